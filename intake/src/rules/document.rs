//! The file itself, and the capabilities that it uses.

rules! {
    SIZE = "too-large" Document Reject {
        title: "A file over the size limit",
        why: "Tiny is what this site is about; the limit is the same for everyone.",
        fix: "Make images and sounds smaller first: they are usually most of it. Then leave out what a library has and the work does not use.",
        fails: Words "an HTML file of one byte more than the limit in policy",
        passes: Html "<p>hello</p>",
    }
    EMPTY = "empty" Document Reject {
        title: "A file with nothing in it",
        why: "There is nothing to publish.",
        fix: "Choose the HTML file of the work.",
        fails: Html "  \n",
        passes: Html "<p>hello</p>",
    }
    ENCODING = "not-utf8" Document Reject {
        title: "Text that is not UTF-8",
        why: "Every work is served as UTF-8, so other encodings would show wrong characters or hide code.",
        fix: "Save the file as UTF-8, which every editor can; a meta element that names an encoding has to say utf-8.",
        fails: Words "bytes that are no UTF-8, UTF-16, or a meta element that names another encoding",
        passes: Html "<meta charset=utf-8><p>é</p>",
    }
    CONTROL = "control-characters" Document Reject {
        title: "Control characters that no text has",
        why: "A NUL or an escape character makes programs disagree about what the text says.",
        fix: "Remove the character; in a script, write it as an escape, such as \\x1b.",
        fails: Html "<p>a\u{0}b</p>",
        passes: Html "<p>a\tb</p>",
    }
    DISGUISE = "other-format" Document Reject {
        title: "A file that is also something else",
        why: "A file that starts like a picture, a zip or a program can be opened as one.",
        fix: "Choose the HTML file itself; it starts with text.",
        fails: Html "GIF89a<script>1</script>",
        passes: Html "<!doctype html><p>hello</p>",
    }
    NESTING = "too-deep" Document Reject {
        title: "Elements, brackets or encodings nested deeper than any program needs",
        why: "Depth is how hostile files bring programs to a halt, so the check stops there.",
        fix: "Flatten the structure; generated markup often has wrappers that can go.",
        fails: Words "elements nested deeper than the limit in policy",
        passes: Html "<div><div><div>three</div></div></div>",
    }
    SYNTAX = "script-syntax" Document Reject {
        title: "A script that cannot be parsed",
        why: "A script that the parser cannot read cannot be checked, and a browser skips it.",
        fix: "Mend the error at this place. TypeScript and JSX have to be compiled to JavaScript before.",
        fails: Script "let let = ;",
        passes: Script "let x = 1 // fine\n",
    }
    FONT = "font-refused" SelfContained Note {
        title: "A font inside the page",
        why: "The policy that every work is served with loads no fonts, so players see the font of their system.",
        fix: "Nothing to mend if the text reads well in any font; a drawn alphabet on a canvas always looks the same.",
        fails: Html "<style>@font-face{font-family:a;src:url(data:font/woff2;base64,d09GMg==)}</style>",
        passes: Html "<style>p{font-family:monospace}</style>",
    }
    UNDECLARED = "capability-undeclared" Capability Explainable {
        title: "A capability used but not declared",
        why: "Whatever the sidecar does not declare is denied by the browser, so this would not work.",
        fix: "Add what the finding shows to work.json, the sidecar, or remove the use.",
        fails: Pair "{\"id\":\"a\",\"title\":\"A\",\"capabilities\":{}}\n---\n<script>new AudioContext()</script>",
        passes: Pair "{\"id\":\"a\",\"title\":\"A\",\"capabilities\":{\"audio\":true}}\n---\n<script>new AudioContext()</script>",
    }
    UNUSED = "capability-unused" Capability Explainable {
        title: "A capability declared but not used",
        why: "A work is given what it needs and no more.",
        fix: "Remove its line from capabilities in work.json, or say in the sidecar how the work uses it.",
        fails: Pair "{\"id\":\"a\",\"title\":\"A\",\"capabilities\":{\"audio\":true}}\n---\n<p>quiet</p>",
        passes: Pair "{\"id\":\"a\",\"title\":\"A\",\"capabilities\":{\"audio\":false}}\n---\n<p>quiet</p>",
    }
}

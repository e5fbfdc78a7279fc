//! Code that makes code, and text that hides text.

rules! {
    EVAL = "eval-call" DynamicEval Reject {
        title: "eval",
        why: "Text that becomes code cannot be read before it is published, and the browser refuses to run it here.",
        fix: "Write the code out; to read data, use JSON.parse.",
        fails: Script "eval(\"score = 1\")",
        passes: Script "const eval_ = x => x; eval_(1);",
    }
    FUNCTION = "eval-function" DynamicEval Reject {
        title: "A function made from text: Function, or the constructor of any function",
        why: "Text that becomes code cannot be read before it is published, and the browser refuses to run it here.",
        fix: "Write the function out; a table of functions covers what a made one would do.",
        fails: Script "[].filter.constructor(\"return this\")()",
        passes: Script "class Hero { clone() { return new this.constructor(); } }",
    }
    TIMER = "eval-timer" DynamicEval Reject {
        title: "A timer that is given text to run",
        why: "setTimeout and setInterval run a text like eval does, and the browser refuses it here.",
        fix: "Pass a function: setTimeout(() => step(), 100).",
        fails: Script "setTimeout(\"step()\", 100)",
        passes: Script "function step() {} setTimeout(step, 100);",
    }
    SCRIPT_ELEMENT = "eval-script" DynamicEval Reject {
        title: "A script element made while the work runs",
        why: "What such a script runs is not in the file that was reviewed.",
        fix: "Put the code into the page's own script.",
        fails: Script "const s = document.createElement(\"script\"); s.text = \"1\"; document.body.append(s);",
        passes: Script "document.createElement(\"canvas\")",
    }
    WRITE = "eval-write" DynamicEval Reject {
        title: "A document written from text that is made while the work runs",
        why: "document.write can write scripts, and text put together at run time cannot be reviewed.",
        fix: "Set textContent or create elements; document.write with plain text is accepted.",
        fails: Script "document.write(\"<p>\" + location.hash)",
        passes: Script "document.write(\"<p>hello</p>\")",
    }
    HANDLER = "eval-handler" DynamicEval Reject {
        title: "An event handler set as text that is made while the work runs",
        why: "setAttribute with an on… name turns text into code.",
        fix: "Use addEventListener with a function.",
        fails: Script "document.body.setAttribute(\"onclick\", prompt())",
        passes: Script "document.body.setAttribute(\"onclick\", \"jump()\"); function jump() {}",
    }
    SCRIPT_URL = "eval-url" DynamicEval Reject {
        title: "A javascript: address",
        why: "Following it runs its text as code, in a place where nobody looks for code.",
        fix: "Use a button and addEventListener.",
        fails: Html "<a href=\"javascript:start()\">start</a>",
        passes: Html "<button onclick=\"start()\">start</button><script>function start() {}</script>",
    }
    WASM = "eval-wasm" DynamicEval Reject {
        title: "WebAssembly",
        why: "A moderator cannot read it, and the policy that every work is served with does not run it.",
        fix: "Compile to JavaScript instead (wasm2js does it), or write the routine in JavaScript.",
        fails: Script "WebAssembly.instantiate(new Uint8Array(8))",
        passes: Script "const text = \"WebAssembly is not used\"",
    }
    REFLECT = "eval-reflect" DynamicEval Reject {
        title: "The names of the window's own functions are enumerated",
        why: "Code that walks over the window can call anything in it without naming it.",
        fix: "Name the functions that you use.",
        fails: Script "Object.getOwnPropertyNames(window).filter(n => n.length == 4)",
        passes: Script "Object.getOwnPropertyNames({ a: 1 })",
    }
    PACKED = "packed" Obfuscation Reject {
        title: "The output of a packer",
        why: "A packed work unpacks itself with eval, which the browser refuses here, and nobody can read it before that.",
        fix: "Submit the source from before packing; minified is fine, and the size limit allows it.",
        fails: Script "eval(function(p,a,c,k,e,d){while(c--)if(k[c])p=p.replace(new RegExp('\\\\b'+c+'\\\\b','g'),k[c]);return p}('0(1)',2,2,'alert|1'.split('|'),0,{}))",
        passes: Script "var a=1,b=2,c=function(d,e){return d+e};c(a,b)",
    }
    OBFUSCATED = "obfuscated" Obfuscation Explainable {
        title: "Names and strings rewritten so that nobody can follow them",
        why: "Every work can be read by whoever plays it; an obfuscator exists to prevent that.",
        fix: "Submit the source from before the obfuscator; minified is fine.",
        fails: Script "var _0x4f2a=['log','a'];var _0x12ab=function(_0x1,_0x2){return _0x4f2a[_0x1]};var _0xaaa1=1,_0xaaa2=2,_0xaaa3=3,_0xaaa4=4,_0xaaa5=5,_0xaaa6=6,_0xaaa7=7,_0xaaa8=8;console[_0x12ab(0)](_0xaaa1+_0xaaa2+_0xaaa3+_0xaaa4+_0xaaa5+_0xaaa6+_0xaaa7+_0xaaa8)",
        passes: Script "var _0=1,_1=2;console.log(_0+_1)",
    }
    COMPUTED = "computed-global" Obfuscation Explainable {
        title: "A member of the window, the document or the like whose name is not known before it runs",
        why: "Any function of the browser could be meant, so the check cannot say what the work does.",
        fix: "Write the name out, or look it up in an object of your own.",
        fails: Script "window[prompt()]()",
        passes: Script "const levels = {}; levels[prompt()] = 1;",
    }
    DEBUGGER = "debugger" Obfuscation Note {
        title: "A debugger statement",
        why: "It stops whoever reads the work with the developer tools open.",
        fix: "Remove it before publishing.",
        fails: Script "debugger",
        passes: Script "const label = \"debugger\"",
    }
    CLOAK = "cloaking" Obfuscation Explainable {
        title: "A question whether a person or a test is watching, or on which site the work runs",
        why: "A work that behaves differently while it is reviewed was not reviewed.",
        fix: "Remove the test; the work runs on one site only, and nobody else can embed it.",
        fails: Script "if (!navigator.webdriver) start(); function start() {}",
        passes: Script "if (!navigator.userAgent.includes(\"Mobile\")) start(); function start() {}",
    }
    LONG_LINE = "long-line" Obfuscation Note {
        title: "A minified line",
        why: "Most tiny works are minified and that is fine; a moderator is told to expect it.",
        fix: "Nothing to mend. If you have the readable source, readers enjoy it more.",
        fails: Words "one line of script longer than the limit in policy",
        passes: Script "let x = 1",
    }
    PAYLOAD = "encoded-payload" EncodedPayload Explainable {
        title: "A long base64 or hex text that is not an image, a sound or a font",
        why: "What is encoded is not seen by whoever reads the work; the check decodes it, but cannot know its use.",
        fix: "Write the data as plain JavaScript values, or say in the sidecar what it is.",
        fails: Words "a base64 literal of a kilobyte whose content is no known media",
        passes: Script "const dot = \"data:image/gif;base64,R0lGODlhAQABAAAAACw=\"",
    }
    ESCAPES = "needless-escapes" EncodedPayload Explainable {
        title: "Plain letters written as escapes",
        why: "Letters need no escape; written so, a text can be run but not read.",
        fix: "Write the letters themselves.",
        fails: Script "const s = \"\\x77\\x69\\x6e\\x64\\x6f\\x77\\x2e\\x6c\\x6f\\x63\\x61\\x74\\x69\\x6f\\x6e\\x2e\\x68\\x72\\x65\\x66\\x20\\x3d\\x20\\x31\"",
        passes: Script "const arrows = \"\\u2190\\u2191\\u2192\\u2193\"",
    }
    DATA_DOCUMENT = "data-document" EncodedPayload Explainable {
        title: "A document or a script as a data: address",
        why: "It is a second page inside the first one; the check reads it too, but a browser may not open it here.",
        fix: "Put its content into the page itself. If it is there for the player to keep, say that in the sidecar.",
        fails: Html "<a download href=\"data:text/html,<p>hello\">page</a>",
        passes: Html "<a download=a.txt href=\"data:text/plain,hello\">text</a>",
    }
    DIRECTION = "direction-tricks" Obfuscation Explainable {
        title: "Invisible characters that reorder the text around them",
        why: "They make a line of code read differently from how it runs.",
        fix: "Remove them, or write them as escapes such as \\u202e.",
        fails: Script "const role = \"user\u{202E}\"",
        passes: Script "const shalom = \"שלום\"",
    }
}

//! The zip.

rules! {
    UNREADABLE = "zip-unreadable" Archive Reject {
        title: "A zip that cannot be read",
        why: "What cannot be unpacked cannot be checked.",
        fix: "Make the zip anew with the tool of your system; it must be one plain .zip file.",
        fails: Words "bytes that are no zip, a RAR with the ending .zip, a part of a split zip",
        passes: Zip "index.html\nwork.json",
    }
    PATH = "zip-path" Archive Reject {
        title: "An entry whose name leads out of the folder or cannot be a file's",
        why: "Names with .., a drive or a leading slash are how archives overwrite other files.",
        fix: "Zip the folder's contents again, with plain names of letters, digits, dots and hyphens.",
        fails: Zip "index.html\nwork.json\n../evil.html",
        passes: Zip "index.html\nwork.json\ncover..png",
    }
    TWINS = "zip-twins" Archive Reject {
        title: "Two entries of one name",
        why: "Programs disagree about which of them counts, so what was checked might not be what is served.",
        fix: "Remove one of them; names that differ only in case count as one.",
        fails: Zip "index.html\nwork.json\nINDEX.html",
        passes: Zip "index.html\nwork.json\nindex2.txt",
    }
    LINK = "zip-link" Archive Reject {
        title: "A symbolic link or a device",
        why: "A link can name any file of the machine that unpacks it.",
        fix: "Put the file itself into the zip.",
        fails: Zip "index.html\nwork.json\ncover.png (link)",
        passes: Zip "index.html\nwork.json",
    }
    EXECUTABLE = "zip-executable" Archive Reject {
        title: "A program",
        why: "A work is a page; programs have no place in its zip.",
        fix: "Remove the file from the zip.",
        fails: Zip "index.html\nwork.json\nsetup.exe",
        passes: Zip "index.html\nwork.json\nreadme.txt",
    }
    ENCRYPTED = "zip-encrypted" Archive Reject {
        title: "An encrypted entry",
        why: "What is encrypted cannot be checked.",
        fix: "Make the zip without a password.",
        fails: Zip "index.html (encrypted)\nwork.json",
        passes: Zip "index.html\nwork.json",
    }
    OVERLAP = "zip-overlap" Archive Reject {
        title: "Entries that share bytes, or that describe themselves in two ways",
        why: "Such archives are made by hand, to inflate beyond measure or to show each program something else.",
        fix: "Make the zip anew with the tool of your system.",
        fails: Zip "index.html\nwork.json\nb.txt (overlap)",
        passes: Zip "index.html\nwork.json",
    }
    BOMB = "zip-bomb" Archive Reject {
        title: "A zip that holds too much",
        why: "The size limits hold for what is inside, and are counted while it is unpacked.",
        fix: "Keep only the page, its sidecar, its covers and its Python function in the zip.",
        fails: Zip "index.html\nwork.json\nzeros.txt (zeros)",
        passes: Zip "index.html\nwork.json",
    }
    NESTED = "zip-nested" Archive Reject {
        title: "An archive inside the zip",
        why: "Only one layer is unpacked, so what is inside the inner one would never be seen.",
        fix: "Put the files themselves into the zip.",
        fails: Zip "index.html\nwork.json\nold.zip",
        passes: Zip "index.html\nwork.json",
    }
    METHOD = "zip-method" Archive Reject {
        title: "An entry packed by an uncommon method",
        why: "Only stored and deflated entries are unpacked; every tool can make them.",
        fix: "Choose the method Deflate, or Normal, when you make the zip.",
        fails: Zip "index.html (method 14)\nwork.json",
        passes: Zip "index.html (stored)\nwork.json",
    }
    PAGE = "no-page" Archive Reject {
        title: "No page, or more than one",
        why: "A work is exactly one HTML file.",
        fix: "Keep one file with the ending .html, best called index.html; make other pages parts of it.",
        fails: Zip "readme.txt\nwork.json",
        passes: Zip "index.html\nwork.json",
    }
    RENAMED = "page-renamed" Archive Note {
        title: "A page of another name than index.html",
        why: "It is published as index.html, whatever it is called here.",
        fix: "Nothing to mend; call it index.html to be sure.",
        fails: Zip "Index.html\nwork.json",
        passes: Zip "index.html\nwork.json",
    }
    FOLDER = "zip-folder" Archive Note {
        title: "A folder around everything in the zip",
        why: "The files were taken out of the folder, as if it were not there.",
        fix: "Nothing to mend: it was put right.",
        fails: Zip "game/index.html\ngame/work.json",
        passes: Zip "index.html\nwork.json",
    }
    EXTRA = "file-ignored" Archive Note {
        title: "A file that is no part of the work",
        why: "Only the page, the sidecar, its covers and its Python function are published.",
        fix: "Nothing to mend; if the page needs the file, `intake pack` puts it inside.",
        fails: Zip "index.html\nwork.json\n__MACOSX/._index.html",
        passes: Zip "index.html\nwork.json",
    }
}

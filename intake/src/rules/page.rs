//! The page around the work, its storage, its forms and where it could lead a player.

rules! {
    PARENT = "parent-window" ParentDom Reject {
        title: "The window around the work: parent, top, opener, frameElement",
        why: "The frame keeps the work apart from the page around it, so reading that page throws an error.",
        fix: "Remove it. Saves, fullscreen and the backend go through the functions of tf.js, which `intake pack` adds to the page.",
        fails: Script "if (top !== self) parent.document.title = \"mine\"",
        passes: Script "const top = 3, parent = { document: 1 }; parent.document + top;",
    }
    BROADCAST = "parent-broadcast" ParentDom Reject {
        title: "Messages to other windows: BroadcastChannel, document.domain, SharedWorker",
        why: "A work has no other windows, and those of another work are not its business.",
        fix: "Use an EventTarget of your own to send events inside the work.",
        fails: Script "new BroadcastChannel(\"game\")",
        passes: Script "const bus = new EventTarget()",
    }
    REFERRER = "parent-referrer" ParentDom Note {
        title: "Where the player came from: document.referrer, ancestorOrigins, window.name",
        why: "It is always empty here; a moderator sees that the work asks.",
        fix: "Nothing to mend. The test can be removed.",
        fails: Script "console.log(document.referrer)",
        passes: Script "console.log(document.title)",
    }
    LOCAL = "storage-local" Storage Explainable {
        title: "localStorage or sessionStorage without the shim",
        why: "Inside the frame the browser throws an error at the first access, and many works end there.",
        fix: "Run `intake pack`: it adds tf.js, whose shim lets the same code run; TF.save keeps what should last.",
        fails: Script "localStorage.best = 3",
        passes: Script "const localStorage = {}; localStorage.best = 3;",
    }
    LOCAL_SHIMMED = "storage-shimmed" Storage Note {
        title: "localStorage or sessionStorage after the shim",
        why: "The shim of tf.js answers from memory. With save_api declared, what localStorage holds is saved under the player's code; else it is forgotten.",
        fix: "Nothing to mend; TF.save keeps what should last.",
        fails: Words "localStorage in a script after the canonical tf.js",
        passes: Script "const localStorage = {}; localStorage.best = 3;",
    }
    DATABASE = "storage-database" Storage Explainable {
        title: "Another storage of the browser: indexedDB, caches, files, locks",
        why: "The frame has no storage, so each of these throws an error.",
        fix: "Keep the state in a variable and save it with TF.save, a function of tf.js, which `intake pack` adds to the page.",
        fails: Script "indexedDB.open(\"game\")",
        passes: Script "const caches = new Map(); caches.get(1);",
    }
    COOKIE = "storage-cookie" Storage Explainable {
        title: "A cookie",
        why: "There are no cookies on this site, and reading one throws an error inside the frame.",
        fix: "Keep the state in a variable and save it with TF.save, a function of tf.js, which `intake pack` adds to the page.",
        fails: Script "document.cookie = \"best=3\"",
        passes: Script "const jar = { cookie: 3 }; jar.cookie = 4;",
    }
    SEND = "form-send" Forms Reject {
        title: "A form that goes somewhere",
        why: "A form with an address sends what was typed, and default content policies do not stop it.",
        fix: "Remove action and formaction; handle the submit event and call preventDefault.",
        fails: Html "<form action=https://collect.example><input name=a></form>",
        passes: Html "<form onsubmit=\"event.preventDefault()\"><input name=a></form>",
    }
    SECRET = "form-secret" Forms Reject {
        title: "A field for a password, an address of a person or a card",
        why: "Nothing here needs them, and a player must never be asked for them inside a work.",
        fix: "Use a plain text field with another name and no autocomplete.",
        fails: Html "<input type=password>",
        passes: Html "<input type=text autocomplete=off>",
    }
    FILE = "form-file" Forms Explainable {
        title: "A field that takes a file from the player",
        why: "The file stays in the browser, but a moderator wants to know what a tiny work does with it.",
        fix: "Say in the sidecar what the file is for, or remove the field.",
        fails: Html "<input type=file>",
        passes: Html "<input type=range>",
    }
    SUBMIT = "form-submit" Forms Explainable {
        title: "A form submitted by the script",
        why: "submit() sends a form without asking the player; here the browser refuses to send it.",
        fix: "Read the fields with the script instead of submitting the form.",
        fails: Script "document.forms[0].submit()",
        passes: Script "const quiz = { submit() {} }; quiz.submit();",
    }
    LOCATION = "nav-location" Navigation Reject {
        title: "The work leaves its page: location, navigation, history",
        why: "Where a navigation leads is requested from the network, and no content policy forbids it.",
        fix: "Stay on the page and show other content; location.reload() and location.hash are accepted.",
        fails: Script "location.href = \"https://other.example\"",
        passes: Script "location.reload()",
    }
    REFRESH = "nav-refresh" Navigation Reject {
        title: "A page that replaces itself: meta refresh",
        why: "It navigates without any script, which no content policy forbids.",
        fix: "Remove the meta element; use setTimeout and change the page's content.",
        fails: Html "<meta http-equiv=refresh content=\"5;url=https://other.example\">",
        passes: Html "<meta charset=utf-8>",
    }
    BASE = "nav-base" Navigation Reject {
        title: "A base element",
        why: "It changes where every address of the page leads.",
        fix: "Remove it; a work has no other files that an address could name.",
        fails: Html "<base href=https://other.example/>",
        passes: Html "<p id=base></p>",
    }
    LINK = "nav-link" Navigation Reject {
        title: "A link out of the work",
        why: "The frame opens no other site, so a player who follows the link sees an error.",
        fix: "Put the address into the sidecar's description: the page around the work shows it as a link.",
        fails: Html "<a href=https://me.example>my page</a>",
        passes: Html "<a href=#rules>rules</a>",
    }
    WINDOW = "nav-window" Navigation Reject {
        title: "A new window or tab: window.open, target=_blank, _top, _parent",
        why: "The frame opens no windows, so nothing happens when the player expects one.",
        fix: "Show the content inside the work; a link for your readers belongs into the sidecar's description.",
        fails: Script "window.open(\"https://me.example\")",
        passes: Script "const door = { open() {} }; door.open();",
    }
    NUISANCE = "nav-nuisance" Navigation Note {
        title: "Something that holds a player back: beforeunload, print",
        why: "A moderator looks whether it gets in the way.",
        fix: "Nothing to mend, if it is part of the game.",
        fails: Script "addEventListener(\"beforeunload\", e => e.preventDefault())",
        passes: Script "addEventListener(\"keydown\", e => e.preventDefault())",
    }
}

//! Network egress, and what a work would need a network for: files that are not inside it.

rules! {
    FETCH = "net-fetch" Network Reject {
        title: "A request by fetch or XMLHttpRequest",
        why: "A work has no network at all: the browser refuses every request it makes, even one for its own files.",
        fix: "Put the data into the file itself, as a JavaScript value or a data: address of an image or a sound.",
        fails: Script "fetch(\"https://scores.example/top\").then(r => r.json())",
        passes: Script "const level = { fetch() { return [1, 2, 3]; } }; level.fetch();",
    }
    SOCKET = "net-socket" Network Reject {
        title: "A lasting connection: WebSocket, EventSource, WebTransport",
        why: "No work may talk to another machine, so a game for several players cannot be published here.",
        fix: "Remove the connection; two players on one keyboard, or a computer opponent, work without it.",
        fails: Script "new WebSocket(\"wss://play.example/room\")",
        passes: Script "class WebSocket {} new WebSocket();",
    }
    BEACON = "net-beacon" Network Reject {
        title: "A beacon: sendBeacon or fetchLater",
        why: "Beacons report what a player does to another machine, and nothing here may be reported.",
        fix: "Remove the call; tinyfiles has no analytics and adds none.",
        fails: Script "navigator.sendBeacon(\"https://stats.example\", \"start\")",
        passes: Script "const ship = { sendBeacon() {} }; ship.sendBeacon();",
    }
    WEBRTC = "net-webrtc" Network Reject {
        title: "A peer connection (WebRTC), or the address of a STUN or TURN server",
        why: "No content policy stops WebRTC in every browser, so only this check keeps it out.",
        fix: "Remove the peer connection; a published work is played by one person in one browser.",
        fails: Script "const peer = new RTCPeerConnection({ iceServers: [{ urls: \"stun:stun.example\" }] })",
        passes: Script "const label = \"it is your turn: move\"",
    }
    HINT = "net-hint" Network Reject {
        title: "A hint that makes the browser connect: preconnect, dns-prefetch, preload, prefetch, prerender",
        why: "These open connections or ask a name server although every request is refused.",
        fix: "Remove the link element; there is nothing outside the file that could be fetched early.",
        fails: Html "<link rel=preconnect href=https://fonts.example>",
        passes: Html "<link rel=icon href=\"data:image/gif;base64,R0lGODlhAQABAAAAACw=\">",
    }
    LOAD = "net-load" Network Reject {
        title: "An image, style, script, sound or font from another site",
        why: "The browser refuses it, so the player would miss it, and a request would tell another site who plays.",
        fix: "Remove it if it counts visitors or is a font, which no work can load; else save the file beside your page and run `intake pack`, which puts it into the page.",
        fails: Html "<img src=https://cdn.example/hero.png>",
        passes: Html "<img src=data:image/gif;base64,R0lGODlhAQABAAAAACw=>",
    }
    PING = "net-ping" Network Reject {
        title: "A ping attribute on a link",
        why: "A ping tells another machine that a link was followed.",
        fix: "Remove the ping attribute.",
        fails: Html "<a ping=https://stats.example href=#top>up</a>",
        passes: Html "<a href=#top>up</a>",
    }
    FRAME = "net-frame" Network Reject {
        title: "A frame, an object or an embedded document inside the work",
        why: "A frame loads another document, and each fresh frame brings back functions that a check took away.",
        fix: "Show the content in the page itself, in an element of its own or on a canvas.",
        fails: Html "<iframe src=about:blank></iframe>",
        passes: Html "<div id=frame></div>",
    }
    WORKER = "net-worker" Network Reject {
        title: "A worker, a service worker or a worklet",
        why: "The policy that every work is served with starts no worker, so the work would stop at this line.",
        fix: "Run the same code in the page, in slices with requestAnimationFrame if it takes long.",
        fails: Script "new Worker(URL.createObjectURL(new Blob([\"0\"])))",
        passes: Script "class Worker { dig() {} } new Worker().dig();",
    }
    DEVICE = "net-device" Network Reject {
        title: "A device or a service of the browser that no work is given",
        why: "Camera, position, payment, credentials and the like are denied to every work by name.",
        fix: "Remove the call; keyboard, pointer, touch, sound and fullscreen are what a work can use.",
        fails: Script "navigator.geolocation.getCurrentPosition(console.log)",
        passes: Script "const navigator = { geolocation: 1 }; navigator.geolocation;",
    }
    IMPORT = "net-import" Network Reject {
        title: "A module from somewhere else: import, import(), an import map",
        why: "A work is one file, so there is nothing that could be imported.",
        fix: "Bundle the modules into one script (esbuild and rollup do it) and put that into the page.",
        fails: Script "import(\"https://cdn.example/three.js\")",
        passes: Script "const goods = { import: 3, export: 4 }; goods.import;",
    }
    REPORT = "net-report" Network Reject {
        title: "A content policy or a report address of the work's own",
        why: "A policy with a report address sends reports; the one that every work is served with needs no second one.",
        fix: "Remove the meta element.",
        fails: Html "<meta http-equiv=Content-Security-Policy content=\"report-uri https://r.example\">",
        passes: Html "<meta name=viewport content=\"width=device-width\">",
    }
    ADDRESS = "net-address" Network Note {
        title: "A web address in the text of a script",
        why: "Nothing is loaded from it; a moderator sees where it leads.",
        fix: "Nothing to mend. A link for your readers belongs into the sidecar's description.",
        fails: Script "const credit = \"music: https://artist.example\"",
        passes: Script "const svg = \"http://www.w3.org/2000/svg\"",
    }
    MISSING = "missing-file" SelfContained Reject {
        title: "A file that is not inside the work",
        why: "A work is served as one file, so whatever it names beside itself would be missing for every player.",
        fix: "Run `intake pack` on the folder that holds the page and the file: it puts scripts, styles, images and sounds inside, and names what it cannot.",
        fails: Html "<script src=game.js></script>",
        passes: Html "<script>const src = \"game\"</script>",
    }
}

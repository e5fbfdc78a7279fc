//! THE table of the browser's things: what each one means when a work names it.
//!
//! A path is counted from the window, so `window.top.document` and `self["top"]` are both about `top`. Entries that
//! begin with `*.` hold for a member of that name of any object, where the name means only one thing.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::LazyLock;

use policy::Capability;

use crate::finding::Rule;
use crate::rules::code::{CLOAK, EVAL, FUNCTION, WASM};
use crate::rules::network::{BEACON, DEVICE, FETCH, SOCKET, WEBRTC, WORKER};
use crate::rules::page::{BROADCAST, COOKIE, DATABASE, LOCAL, LOCATION, NUISANCE, PARENT, REFERRER, WINDOW};

/// What naming a thing means.
#[derive(Debug, Clone, Copy)]
pub(super) enum Meaning {
    /// Naming it is a finding.
    Named(&'static Rule),
    /// Calling it is one.
    Called(&'static Rule),
    /// Writing to it is one.
    Written(&'static Rule),
    /// It uses a capability.
    Uses(Capability),
}

use Meaning::{Called, Named, Uses, Written};

static TABLE: &[(Meaning, &[&str])] = &[
    (Named(&FETCH), &["fetch", "XMLHttpRequest", "XDomainRequest", "ActiveXObject"]),
    (Named(&SOCKET), &["WebSocket", "MozWebSocket", "WebSocketStream", "EventSource", "WebTransport"]),
    (Named(&BEACON), &["navigator.sendBeacon", "fetchLater", "ReportingObserver"]),
    (
        Named(&WEBRTC),
        &[
            "RTCPeerConnection",
            "webkitRTCPeerConnection",
            "mozRTCPeerConnection",
            "RTCDataChannel",
            "RTCIceTransport",
            "RTCSessionDescription",
            "RTCIceCandidate",
        ],
    ),
    (
        Named(&WORKER),
        &[
            "Worker",
            "SharedWorker",
            "importScripts",
            "navigator.serviceWorker",
            "CSS.paintWorklet",
            "CSS.layoutWorklet",
            "CSS.animationWorklet",
        ],
    ),
    (Named(&WORKER), &["*.audioWorklet", "AudioWorkletNode"]),
    (
        Named(&DEVICE),
        &[
            "navigator.credentials",
            "navigator.geolocation",
            "navigator.mediaDevices",
            "navigator.getUserMedia",
            "navigator.webkitGetUserMedia",
            "navigator.mozGetUserMedia",
            "navigator.bluetooth",
            "navigator.usb",
            "navigator.hid",
            "navigator.serial",
            "navigator.contacts",
            "navigator.xr",
            "navigator.requestMIDIAccess",
            "navigator.registerProtocolHandler",
            "navigator.share",
            "navigator.presentation",
            "navigator.login",
            "Notification",
            "PushManager",
            "PaymentRequest",
            "SpeechRecognition",
            "webkitSpeechRecognition",
            "PresentationRequest",
            "IdleDetector",
            "NDEFReader",
            "getScreenDetails",
        ],
    ),
    (Named(&EVAL), &["eval", "execScript", "ShadowRealm"]),
    (Named(&FUNCTION), &["Function"]),
    (Named(&WASM), &["WebAssembly"]),
    (Named(&PARENT), &["parent", "top", "opener", "frameElement"]),
    (Named(&BROADCAST), &["BroadcastChannel", "document.domain"]),
    (Named(&REFERRER), &["document.referrer", "location.ancestorOrigins", "name"]),
    (Named(&LOCAL), &["localStorage", "sessionStorage"]),
    (
        Named(&DATABASE),
        &[
            "indexedDB",
            "webkitIndexedDB",
            "mozIndexedDB",
            "msIndexedDB",
            "openDatabase",
            "caches",
            "navigator.storage",
            "navigator.locks",
            "navigator.webkitTemporaryStorage",
            "navigator.webkitPersistentStorage",
            "requestFileSystem",
            "webkitRequestFileSystem",
            "showSaveFilePicker",
            "showOpenFilePicker",
            "showDirectoryPicker",
            "document.requestStorageAccess",
            "sharedStorage",
        ],
    ),
    (Named(&COOKIE), &["document.cookie", "cookieStore"]),
    (Named(&CLOAK), &["navigator.webdriver", "location.hostname", "location.host", "location.origin"]),
    (Named(&LOCATION), &["location.assign", "location.replace", "navigation"]),
    (Called(&LOCATION), &["history.back", "history.forward", "history.go"]),
    (
        Written(&LOCATION),
        &[
            "location",
            "location.href",
            "location.host",
            "location.hostname",
            "location.pathname",
            "location.search",
            "location.port",
            "location.protocol",
        ],
    ),
    (Called(&WINDOW), &["open", "document.open", "showModalDialog"]),
    (Called(&NUISANCE), &["print"]),
    (Written(&NUISANCE), &["onbeforeunload"]),
    (Uses(Capability::Audio), &["AudioContext", "webkitAudioContext", "Audio", "speechSynthesis"]),
    (
        Uses(Capability::Fullscreen),
        &[
            "*.requestFullscreen",
            "*.webkitRequestFullscreen",
            "*.webkitRequestFullScreen",
            "*.mozRequestFullScreen",
            "*.msRequestFullscreen",
        ],
    ),
    (Uses(Capability::PointerLock), &["*.requestPointerLock", "*.mozRequestPointerLock", "TF.pointerLock"]),
    (Uses(Capability::SaveApi), &["TF.save", "TF.load"]),
    (Uses(Capability::PythonBackend), &["TF.backend"]),
];

/// Names that sinks look at, or through which other things are reached.
const ALSO: [&str; 12] = [
    "constructor",
    "window",
    "self",
    "globalThis",
    "frames",
    "document",
    "navigator",
    "history",
    "location",
    "Reflect",
    "Object",
    "setTimeout",
];

/// Things whose members are found by name, and so must not be looked up by a name that is not known.
const SENSITIVE: [&str; 6] = ["", "document", "navigator", "location", "history", "navigation"];

static PATHS: LazyLock<HashMap<&str, Vec<Meaning>>> = LazyLock::new(|| {
    let mut paths: HashMap<&str, Vec<Meaning>> = HashMap::new();
    for (meaning, names) in TABLE {
        for name in *names {
            paths.entry(name).or_default().push(*meaning);
        }
    }
    paths
});

static LAST: LazyLock<HashSet<&str>> =
    LazyLock::new(|| PATHS.keys().map(|p| p.rsplit('.').next().unwrap_or(p)).chain(ALSO).collect());

/// The path of a member.
pub(super) fn join(path: &str, name: &str) -> Rc<str> {
    match (path, name) {
        ("", "window" | "self" | "globalThis" | "frames") | ("document", "defaultView" | "parentWindow") => {
            "".into()
        }
        ("document", "location") => "location".into(),
        (_, "ownerDocument") => "document".into(),
        (path, "__proto__") => path.into(),
        ("", name) => name.into(),
        (path, _) if path.len() > 200 => path.into(),
        (path, name) => format!("{path}.{name}").into(),
    }
}

/// What naming the thing at `path` means.
pub(super) fn meanings(path: &str) -> impl Iterator<Item = Meaning> {
    PATHS.get(path).into_iter().flatten().copied()
}

/// What a member of that name means whatever it is a member of.
pub(super) fn member_meanings(name: &str) -> impl Iterator<Item = Meaning> {
    // A short key is cheaper to look up than to keep a second table.
    let key = format!("*.{name}");
    PATHS.get(key.as_str()).cloned().unwrap_or_default().into_iter()
}

/// Whether a thing of that last name can matter at all.
pub(super) fn can_matter(name: &str) -> bool {
    LAST.contains(name)
}

/// Whether the window has a thing of that name that matters.
pub(super) fn is_known(name: &str) -> bool {
    PATHS.contains_key(name) || ALSO.contains(&name)
}

/// Whether a `var` of that name leaves the window's own in place.
pub(super) fn is_unforgeable(name: &str) -> bool {
    matches!(name, "top" | "location" | "document" | "window")
}

/// Whether a member of the thing whose name is not known could be anything.
pub(super) fn is_sensitive(path: &str) -> bool {
    SENSITIVE.contains(&path)
}

/// Whether the thing is known to be a function.
pub(super) fn is_function(path: &str) -> bool {
    const FUNCTIONS: [&str; 28] = [
        "alert",
        "atob",
        "btoa",
        "setTimeout",
        "setInterval",
        "isNaN",
        "isFinite",
        "parseInt",
        "parseFloat",
        "eval",
        "requestAnimationFrame",
        "createElement",
        "getElementById",
        "querySelector",
        "addEventListener",
        "confirm",
        "prompt",
        "focus",
        "blur",
        "close",
        "stop",
        "log",
        "now",
        "random",
        "floor",
        "fetch",
        "open",
        "Object",
    ];
    path.ends_with(".constructor") || path == "Function" || {
        let last = path.rsplit('.').next().unwrap_or(path);
        FUNCTIONS.contains(&last)
            || ["Array", "String", "Number", "Date", "RegExp", "Promise", "Map", "Set"].contains(&path)
    }
}

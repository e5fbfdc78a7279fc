//! The part of the policy that the page around a work enforces, as a script module.

use std::fmt::Write as _;

use crate::{Capability, grants, limits};

/// The text of `policy.js`: the methods that each capability lets a work call, and the limits of the bridge.
pub fn host_script() -> String {
    let mut text = String::from("// Rendered from policy/data/grants.toml and limits.toml.\n\n");
    text.push_str(
        "/** @type {Record<string, string[]>} Methods of the bridge by the capability that grants them. */\n",
    );
    text.push_str("export const methods = {\n");
    for capability in Capability::ALL {
        let _ = writeln!(text, "  {}: {:?},", capability.key(), grants().grant(capability).methods);
    }
    let (bridge, site) = (&limits().bridge, &limits().site);
    let _ = write!(
        text,
        "}};\n\nexport const limits = {{\n  messageBytesMax: {},\n  messagesPerSecondMax: {},\n  messagesBurstMax: {},\n  \
         messagesRefusedMax: {},\n  dialogsInARowMax: {},\n  focusTheftsMax: {},\n  hiddenSecondsMax: {},\n  loadSecondsMax: {},\n}};\n",
        bridge.message_bytes_max,
        bridge.messages_per_second_max,
        bridge.messages_burst_max,
        bridge.messages_refused_max,
        bridge.dialogs_in_a_row_max,
        bridge.focus_thefts_max,
        site.hidden_seconds_max,
        site.load_seconds_max,
    );
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_module_has_every_capability_and_the_limits() {
        let text = super::host_script();
        assert!(text.contains("  pointer_lock: [\"pointer.lock\", \"pointer.unlock\"],\n"), "{text}");
        assert!(text.contains("  audio: [],\n") && text.contains("  hiddenSecondsMax: 120,\n"), "{text}");
    }
}

//! The part of the policy that the pages enforce or tell, as a script module.

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
    let (bridge, site, save) = (&limits().bridge, &limits().site, &limits().save);
    let groups: [(&str, &[(&str, u32)]); 2] = [
        (
            "limits",
            &[
                ("messageBytesMax", bridge.message_bytes_max),
                ("messagesPerSecondMax", bridge.messages_per_second_max),
                ("messagesBurstMax", bridge.messages_burst_max),
                ("messagesRefusedMax", bridge.messages_refused_max),
                ("dialogsInARowMax", bridge.dialogs_in_a_row_max),
                ("focusTheftsMax", bridge.focus_thefts_max),
                ("savesPerMinuteMax", bridge.saves_per_minute_max),
                ("loadsPerMinuteMax", bridge.loads_per_minute_max),
                ("autosaveSecondsMin", bridge.autosave_seconds_min),
                ("pythonCallsWaitingMax", bridge.python_calls_waiting_max),
                ("requestSecondsMax", bridge.request_seconds_max),
                ("hiddenSecondsMax", site.hidden_seconds_max),
                ("loadSecondsMax", site.load_seconds_max),
            ],
        ),
        (
            "saves",
            &[
                ("bodyBytesMax", save.body_bytes_max),
                ("wordLetters", save.word_letters),
                ("passphraseRounds", save.passphrase_rounds),
                ("idleYearsMax", save.idle_years_max),
            ],
        ),
    ];
    for (group, rows) in groups {
        let _ = writeln!(text, "}};\n\nexport const {group} = {{");
        for (name, value) in rows {
            let _ = writeln!(text, "  {name}: {value},");
        }
    }
    text.push_str("};\n");
    let work = &limits().work;
    let _ = write!(
        text,
        "\nexport const work = {{\n  htmlBytesMax: {},\n  pythonBytesMax: {},\n  sidecarBytesMax: {},\n  coverBytesMax: {},\n  \
         slugCharsMax: {},\n}};\n\nexport const zip = {{ archiveBytesMax: {} }};\n",
        work.html_bytes_max,
        work.python_bytes_max,
        work.sidecar_bytes_max,
        work.cover_bytes_max,
        work.slug_chars_max,
        limits().zip.archive_bytes_max,
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
        assert!(text.contains("};\n\nexport const saves = {\n  bodyBytesMax: 262144,\n"), "{text}");
        assert_eq!(text.matches('{').count(), text.matches('}').count(), "{text}");
    }
}

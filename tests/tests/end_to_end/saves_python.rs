//! Python functions as a work meets them: closed, open, wrong, and with the state of the visit going round.

use anyhow::Result;
use serde_json::{Value, json};
use tests::player::{Player, Probe, installation};

const COUNTER: &str = r#"
import json


def run(inputs):
    if inputs.get("fail"):
        raise ValueError("as asked")
    while inputs.get("forever"):
        pass
    if inputs.get("keep"):
        return {"saw": inputs.get("state")}
    state = json.loads(inputs.get("state") or "{}")
    state["count"] = state.get("count", 0) + 1
    return {"saw": inputs.get("state"), "state": json.dumps(state)}
"#;

fn failed(answer: &Value, kind: &str) -> bool {
    answer.as_str().is_some_and(|a| a.starts_with(&format!("{kind}: ")))
}

#[tokio::test]
async fn a_function_and_a_script_go_on_with_the_same_code() -> Result<()> {
    let both = json!({"save_api": true, "python_backend": "counter.py"});
    let alone = json!({"python_backend": "counter.py"});
    let (here, _api) = installation(&[
        Probe { python: COUNTER, ..Probe::new("counts", "", both) },
        Probe { python: COUNTER, ..Probe::new("forgets", "", alone) },
        Probe::new("none", "", json!({})),
    ])?;
    let one = Player::at(&here, "probe/counts").await?;
    let answer = one.work("TF.backend({})").await?;
    assert!(failed(&answer, "python-closed"), "without a runner the work is told: {answer}");
    assert_eq!(one.work("document.title").await?, json!("probe"), "and goes on");
    let _runner = here.runner()?;

    // The function makes a state; the player saves it; a script on another device goes on with it.
    assert_eq!(one.work("TF.backend({})").await?["saw"], Value::Null);
    assert_eq!(one.work("TF.backend({})").await?["saw"], json!(r#"{"count":1}"#));
    assert_eq!(one.work("TF.backend({keep: true})").await?["saw"], json!(r#"{"count":2}"#));
    assert_eq!(one.work("TF.load()").await?, json!({"count": 2}), "no state returned keeps the old");
    one.drawer().await?;
    assert!(one.text("sees").await?.contains("Nothing yet"));
    assert_eq!(one.press("save-now", "save-state").await?, "Saved.");
    let code = one.text("code").await?;
    let two = Player::at(&here, "probe/counts").await?;
    assert_eq!(two.work(&format!("TF.load('{code}')")).await?, json!({"count": 2}));
    assert_eq!(two.save("{count: 40}").await?, code);
    // And back, in the other positions too.
    for (position, count) in [("plaintext", 41), ("encrypted", 42)] {
        two.choose(position).await?;
        let saw = two.work("TF.backend({}).then(a => a.saw)").await?;
        assert_eq!(saw, json!(format!(r#"{{"count":{}}}"#, count - 1)));
        assert_eq!(two.press("save-now", "save-state").await?, "Saved.");
        let three = Player::at(&here, "probe/counts").await?;
        assert_eq!(three.work(&format!("TF.load('{code}')")).await?, json!({"count": count}), "{position}");
        three.close().await?;
    }
    two.choose("offline").await?;
    assert_eq!(two.work("TF.backend({}).then(a => a.saw)").await?, json!(r#"{"count":42}"#));
    assert_eq!(two.work("TF.load()").await?, json!({"count": 43}));

    // A work that sends a state of its own, or saves nothing, has nothing taken from its answer.
    assert_eq!(
        two.work(r#"TF.backend({state: '{"count":7}'}).then(a => a.saw)"#).await?,
        json!(r#"{"count":7}"#)
    );
    assert_eq!(two.work("TF.load()").await?, json!({"count": 43}));
    let forgets = Player::at(&here, "probe/forgets").await?;
    for _ in 0..2 {
        assert_eq!(forgets.work("TF.backend({}).then(a => a.saw)").await?, Value::Null);
    }

    // What goes wrong has a name, and the state survives it.
    let answer = two.work("TF.backend({fail: true})").await?;
    assert!(
        failed(&answer, "python-error") && answer.as_str().is_some_and(|a| a.contains("line 7")),
        "{answer}"
    );
    assert!(failed(&two.work("TF.backend({forever: true})").await?, "python-timeout"));
    assert!(failed(&two.work("TF.backend('no object')").await?, "bad-request"));
    assert!(failed(&two.work("TF.backend({long: 'x'.repeat(90_000)})").await?, "python-inputs"));
    assert_eq!(two.work("TF.load()").await?, json!({"count": 43}));
    // A call that is under way when the player loads a save does not put its own state in that place.
    let hold = "const real = fetch; globalThis.fetch = async (path, options) => { const answer = await real(path, options);
        if (path.includes('/python/')) await new Promise(go => { globalThis.release = () => { globalThis.fetch = real; go() } });
        return answer }";
    two.browser.run(hold).await?;
    two.work("(TF.backend({}), 1)").await?;
    two.until("return globalThis.release ? true : null").await?;
    assert!(two.load(&code, None).await?.starts_with("Loaded"));
    two.browser.run("release()").await?;
    assert_eq!(two.work("TF.backend({keep: true}).then(a => a.saw)").await?, json!(r#"{"count":42}"#));
    assert_eq!(two.work("TF.load()").await?, json!({"count": 42}));
    let none = Player::at(&here, "probe/none").await?;
    assert!(failed(&none.work("TF.backend({})").await?, "undeclared"));
    for player in [one, two, forgets, none] {
        player.close().await?;
    }
    Ok(())
}

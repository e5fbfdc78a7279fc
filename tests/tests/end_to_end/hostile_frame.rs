//! A work that means harm, at the bridge; and what saving leaves behind on the disk.

use std::fs;
use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};
use tests::player::{Player, Probe, installation};
use walkdir::WalkDir;

/// Takes the port that tf.js gets, and sends whatever it likes through it.
const RAW: &str = "addEventListener('message', e => { if (e.data?.tf === 'port') { globalThis.ports = (globalThis.ports ?? 0) + 1;
      globalThis.raw = e.ports[0] } });
    globalThis.say = text => TF.ready.then(() => new Promise(done => {
      raw.addEventListener('message', e => done(JSON.parse(e.data)), { once: true });
      raw.postMessage(text) }));
    globalThis.nested = () => new Promise(done => { const f = document.createElement('iframe');
      addEventListener('message', e => { if (e.data === 'sent') TF.load().then(done); if (e.data === 'got') globalThis.got = true });
      f.srcdoc = '<script>onmessage = e => { if (e.data?.tf === \"port\") parent.postMessage(\"got\", \"*\") };' +
        'parent.parent.postMessage({tf: \"hello\", version: 1}, \"*\"); parent.postMessage(\"sent\", \"*\")</' + 'script>';
      document.body.append(f) });";

#[tokio::test]
async fn a_hostile_frame_gets_what_it_declared_and_nothing_else() -> Result<()> {
    let (here, _api) = installation(&[Probe::new("evil", RAW, json!({"save_api": true}))])?;
    let one = Player::at(&here, "probe/evil").await?;
    // The control: the raw port works.
    let call = |method: &str| {
        format!(r#"say(JSON.stringify({{jsonrpc: "2.0", id: 9, method: "{method}", params: {{}}}}))"#)
    };
    assert_eq!(one.work(&call("save.get")).await?["result"], json!({"state": null}));
    for (message, kind) in [
        (call("backend.call"), "undeclared"),
        (call("pointer.lock"), "undeclared"),
        (call("constructor"), "unknown-method"),
        (call("__proto__"), "unknown-method"),
        ("say('x'.repeat(2_000_000))".to_owned(), "too-large"),
        ("say('[]')".to_owned(), "bad-request"),
        ("say('{')".to_owned(), "bad-request"),
        ("say({})".to_owned(), "bad-request"),
        (r#"say('{"jsonrpc":"2.0","id":{},"method":"save.get"}')"#.to_owned(), "bad-request"),
        // A reply to a call that the page never made.
        (r#"say('{"jsonrpc":"2.0","id":1,"result":{"state":7}}')"#.to_owned(), "bad-request"),
        (r#"say('{"jsonrpc":"2.0","id":1,"method":"save.put","params":{"state":"' + 'x'.repeat(300_000) + '"}}')"#.to_owned(), "too-large"),
        ("say('{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"save.put\",\"params\":' + '['.repeat(100_000) + ']'.repeat(100_000) + '}')".to_owned(), "bad-request"),
    ] {
        let answer = one.work(&message).await?;
        assert_eq!(answer["error"]["data"]["type"], json!(kind), "{message}: {answer}");
    }
    // Keys that pollute prototypes are keys like any other, there and back.
    let state = r#"{"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}, "state": {"__proto__": 2}}"#;
    let put = format!(
        "say('{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"save.put\",\"params\":{{\"state\":{state},\"__proto__\":{{\"unasked\":true}}}}}}')"
    );
    let code = one.work(&put).await?["result"]["code"].clone();
    assert!(code.is_string(), "{code}");
    assert_eq!(
        one.browser.run("return [({}).polluted ?? null, ({}).unasked ?? null]").await?,
        json!([null, null])
    );
    let two = Player::at(&here, "probe/evil").await?;
    assert_eq!(
        two.work(&format!("TF.load({code}).then(JSON.stringify)")).await?,
        json!(state.replace(": ", ":").replace(", ", ","))
    );
    // Another frame in the work, and another window, are not the work.
    two.work("nested()").await?;
    assert_eq!(two.work("[globalThis.got ?? false, ports]").await?, json!([false, 1]));
    two.browser
        .run("postMessage({tf: 'hello', version: 1}, '*'); postMessage({tf: 'missing', status: 410}, '*')")
        .await?;
    assert_eq!(two.work("TF.load().then(() => ports)").await?, json!(1));
    // It tries code after code, and is held back.
    let tries = "(async () => { let last; for (let i = 0; i < 40; i++) last = await TF.load('AAAA-AAAA-AAAA-AAA' + 'ABCDEFGH'[i % 8]).catch(e => e.type); return last })()";
    assert_eq!(two.work(tries).await?, json!("too-fast"));
    // It floods the port, and is stopped; the page lives.
    one.work("(setInterval(() => { for (let i = 0; i < 2000; i++) raw.postMessage('{}') }, 5), 1)").await?;
    one.until("const r = document.getElementById('reason'); return r.hidden || !r.textContent.includes('more messages') ? null : true").await?;
    assert_eq!(one.browser.run("return document.querySelectorAll('iframe').length").await?, json!(0));
    one.play().await?;
    assert_eq!(one.work("TF.ready.then(() => 'again')").await?, json!("again"));
    one.close().await?;
    two.close().await?;
    Ok(())
}

/// Every file below a folder that has one of these in it.
fn containing(folder: &Path, needles: &[String]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in WalkDir::new(folder).into_iter().filter_map(Result::ok).filter(|e| e.file_type().is_file()) {
        let bytes = fs::read(entry.path())?;
        for needle in needles {
            if bytes.windows(needle.len()).any(|w| w.eq_ignore_ascii_case(needle.as_bytes())) {
                found.push(format!("{}: {needle}", entry.path().display()));
            }
        }
    }
    Ok(found)
}

#[tokio::test]
async fn a_visit_that_saved_leaves_nothing_to_join() -> Result<()> {
    let (here, api) = installation(&[Probe::new("keeps", "", json!({"save_api": true}))])?;
    let one = Player::at(&here, "probe/keeps").await?;
    let code = one.save("{secret: 'marmalade'}").await?;
    let two = Player::at(&here, "probe/keeps").await?;
    two.work(&format!("TF.load('{code}')")).await?;
    two.save("{secret: 'quince'}").await?;
    // Rejected in every way that a browser can be: 412, 404, and with the server away 502.
    assert!(one.work("TF.save({secret: 'pear'})").await?.is_string());
    assert!(one.work("TF.load('AAAA-AAAA-AAAA-AAAA')").await?.is_string());
    api.stop()?;
    assert!(two.work("TF.save({secret: 'medlar'})").await?.is_string());
    let digest = format!(
        "return crypto.subtle.digest('SHA-256', new TextEncoder().encode('probe/keeps:{code}'))
            .then(d => [...new Uint8Array(d)].map(b => b.toString(16).padStart(2, '0')).join(''))"
    );
    let key = one.browser.run(&digest).await?.as_str().unwrap_or_default().to_owned();
    // In the frame, nothing was asked of anybody.
    assert_eq!(one.work("performance.getEntriesByType('resource').length").await?, json!(0));
    let log = one.close().await?;
    assert!(log.contains(&key), "the control: the page asked for the key");
    two.close().await?;
    let code_bare = code.replace('-', "");
    let mut needles = vec![code, code_bare, "marmalade".to_owned(), "quince".to_owned(), "medlar".to_owned()];
    assert_eq!(containing(&here.data(""), &needles)?, Vec::<String>::new());
    needles = vec![key];
    let found = containing(&here.data(""), &needles)?;
    assert!(found.iter().all(|f| f.contains("/saves/saves.db")), "{found:?}");
    let log = fs::read_to_string(here.data("nginx/access.log"))?;
    assert!(log.contains("/probe/keeps/"), "the control: pages are logged: {log}");
    assert!(!log.contains("/api/"), "{log}");
    assert_eq!(fs::read_to_string(here.data("nginx/error.log")).unwrap_or_default(), "");
    // To the content site only the work itself was asked for.
    let asked: Vec<Value> = log
        .lines()
        .filter(|l| l.split(' ').nth(1) == Some("127.0.0.1"))
        .map(|l| json!(l.split(' ').nth(3)))
        .collect();
    assert!(
        !asked.is_empty() && asked.iter().all(|p| p == "/probe/keeps/" || p == "/probe/keeps/index.html"),
        "{asked:?}"
    );
    for line in log.lines() {
        assert!(!line.split(' ').skip(2).any(|word| word.contains("127.0.0.1")), "an address: {line}");
    }
    Ok(())
}

//! What a player does with saves, in a real browser through nginx to the real `api`: every position, every wrong entry,
//! two devices, no network, no server.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tests::Installation;
use tests::player::{Player, Probe, installation};
use tests::services::Service;

fn saving() -> Result<(Installation, Service)> {
    installation(&[
        Probe::new("keeps", "", json!({"save_api": true})),
        Probe::new("other", "", json!({"save_api": true})),
    ])
}

/// The bodies in the database of saves.
fn bodies(here: &Installation) -> Result<String> {
    let read = |name: &str| fs::read(here.data("saves").join(name)).unwrap_or_default();
    let all = [read("saves.db"), read("saves.db-wal")].concat();
    Ok(String::from_utf8_lossy(&all).into_owned())
}

#[tokio::test]
async fn sixteen_characters_carry_a_game_to_another_device() -> Result<()> {
    let (here, _api) = saving()?;
    let one = Player::at(&here, "probe/keeps").await?;
    assert_eq!(one.work("TF.load()").await?, Value::Null);
    let code = one.save("{level: 3, secret: 'marmalade'}").await?;
    assert_eq!(one.save("{level: 4, secret: 'marmalade'}").await?, code, "one visit, one code");
    one.drawer().await?;
    assert_eq!(one.text("code").await?, code);
    assert!(one.text("sees").await?.contains("cannot read"));
    // By the work's own field, written the way people write.
    let two = Player::at(&here, "probe/keeps").await?;
    let written = code.to_lowercase().replace('-', " ");
    assert_eq!(two.work(&format!("TF.load('{written}')")).await?, json!({"level": 4, "secret": "marmalade"}));
    // By the drawer: the work starts again and finds the state.
    let three = Player::at(&here, "probe/keeps").await?;
    let said = three.load(&written, None).await?;
    assert!(said.starts_with("Loaded"), "{said}");
    assert_eq!(three.work("TF.load()").await?["level"], json!(4));
    assert_eq!(three.save("{level: 5}").await?, code);
    // A code belongs to one work.
    let other = Player::at(&here, "probe/other").await?;
    let said = other.work(&format!("TF.load('{code}')")).await?;
    assert!(said.as_str().is_some_and(|s| s.starts_with("not-found: ")), "{said}");
    assert!(!bodies(&here)?.contains("marmalade"));
    for player in [one, two, three, other] {
        player.close().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_readable_save_may_have_a_word() -> Result<()> {
    let (here, _api) = saving()?;
    let one = Player::at(&here, "probe/keeps").await?;
    one.choose("plaintext").await?;
    let code = one.save("{secret: 'marmalade'}").await?;
    one.drawer().await?;
    assert!(one.text("sees").await?.contains("marmalade"));
    assert!(bodies(&here)?.contains("marmalade"), "the control: a readable save is found in the file");
    one.write("word", "no7e").await?;
    assert!(one.press("word-part button", "word-said").await?.contains("4 letters"));
    one.write("word", "moth").await?;
    assert!(one.press("word-part button", "word-said").await?.contains("only with the word"));
    let two = Player::at(&here, "probe/keeps").await?;
    // The work cannot give a word, so the page asks the player.
    let said = two.work(&format!("TF.load('{code}')")).await?;
    assert!(said.as_str().is_some_and(|s| s.starts_with("wrong-word: ")), "{said}");
    two.until("return document.getElementById('load-word').hidden ? null : true").await?;
    let said = two.load(&code, Some("lamp")).await?;
    assert!(said.contains("word is missing or another") && said.contains("not harmed"), "{said}");
    assert_eq!(two.work("TF.load()").await?, Value::Null, "a wrong word changes nothing");
    let said = two.load(&code, Some("Moth")).await?;
    assert!(said.starts_with("Loaded"), "{said}");
    assert_eq!(two.work("TF.load()").await?, json!({"secret": "marmalade"}));
    // Another word, then none, then encrypted: the code stays.
    two.drawer().await?;
    two.write("word", "lamp").await?;
    assert!(two.press("word-part button", "word-said").await?.contains("only with the word"));
    two.choose("encrypted").await?;
    assert_eq!(two.save("{secret: 'quince'}").await?, code);
    let three = Player::at(&here, "probe/keeps").await?;
    assert_eq!(three.work(&format!("TF.load('{code}')")).await?, json!({"secret": "quince"}));
    for player in [one, two, three] {
        player.close().await?;
    }
    Ok(())
}

#[tokio::test]
async fn offline_nothing_is_sent_and_a_block_brings_it_back() -> Result<()> {
    let (here, _api) = saving()?;
    let one = Player::at(&here, "probe/keeps").await?;
    one.choose("offline").await?;
    assert_eq!(one.work("TF.save({level: 7})").await?, json!({"code": null}));
    assert!(one.text("save-state").await?.contains("this page only"));
    one.write("passphrase", "a goose at midnight").await?;
    assert!(one.press("make-block button", "make-said").await?.contains("passphrase"));
    let block = one.browser.run("return document.getElementById('made-text').value").await?;
    let block = block.as_str().context("a block")?.to_owned();
    let asked = one
        .browser
        .run("return performance.getEntriesByType('resource').filter(r => r.name.includes('/api/')).length");
    assert_eq!(asked.await?, json!(0));
    let two = Player::at(&here, "probe/keeps").await?;
    two.drawer().await?;
    let put = |text: &str| format!("document.getElementById('block-text').value = {}", json!(text));
    let lines: Vec<&str> = block.lines().collect();
    for (text, secret, expected) in [
        (lines[..4].join("\n"), "a goose at midnight", "cut off at line 5"),
        (block.clone(), "a goose at noon", "passphrase does not open"),
        ("nothing".to_owned(), "", "no save block"),
    ] {
        two.browser.run(&put(&text)).await?;
        two.write("secret", secret).await?;
        let said = two.press("open-block button", "open-said").await?;
        assert!(said.contains(expected), "{said}");
        assert_eq!(two.work("TF.load()").await?, Value::Null, "a wrong entry changes nothing");
    }
    two.browser.run(&put(&format!("“{}”", block.replace('\n', "  ")))).await?;
    two.write("secret", "a goose at midnight").await?;
    let said = two.press("open-block button", "open-said").await?;
    assert!(said.starts_with("The block is open"), "{said}");
    assert_eq!(two.work("TF.load()").await?, json!({"level": 7}));
    // Another work's page says whose it is.
    let other = Player::at(&here, "probe/other").await?;
    other.drawer().await?;
    other.browser.run(&put(&block)).await?;
    other.write("secret", "a goose at midnight").await?;
    assert!(other.press("open-block button", "open-said").await?.contains("a save of probe/keeps"));
    assert!(!fs::exists(here.data("saves/saves.db"))? || !bodies(&here)?.contains("probe"));
    for player in [one, two, other] {
        player.close().await?;
    }
    Ok(())
}

#[tokio::test]
async fn of_two_devices_neither_overwrites_the_other() -> Result<()> {
    let (here, _api) = saving()?;
    let one = Player::at(&here, "probe/keeps").await?;
    let code = one.save("{by: 'one'}").await?;
    let two = Player::at(&here, "probe/keeps").await?;
    two.work(&format!("TF.load('{code}')")).await?;
    two.save("{by: 'two'}").await?;
    let late = |n: u32| format!("TF.save({{by: 'one', n: {n}}})");
    for n in 0..2 {
        let said = one.work(&late(n)).await?;
        assert!(said.as_str().is_some_and(|s| s.starts_with("newer-save: ")), "{said}");
    }
    // The drawer has opened and asks. First: both.
    one.until("return document.getElementById('conflict').hidden ? null : true").await?;
    one.click("keep-both").await?;
    one.until("return document.getElementById('conflict').hidden || null").await?;
    let own = one.text("code").await?;
    assert_ne!(own, code);
    assert_eq!(two.work(&format!("TF.load('{own}')")).await?, json!({"by": "one", "n": 1}));
    assert_eq!(two.work(&format!("TF.load('{code}')")).await?, json!({"by": "two"}));
    // Then: ours in the place of theirs.
    two.work(&format!("TF.load('{own}')")).await?;
    one.save("{by: 'one', n: 2}").await?;
    assert!(two.work("TF.save({by: 'two', n: 3})").await?.as_str().is_some());
    two.until("return document.getElementById('conflict').hidden ? null : true").await?;
    two.click("keep-ours").await?;
    two.until("return document.getElementById('conflict').hidden || null").await?;
    // Then: theirs in the place of ours.
    assert!(one.work("TF.save({by: 'one', n: 4})").await?.as_str().is_some());
    one.until("return document.getElementById('conflict').hidden ? null : true").await?;
    one.click("take-theirs").await?;
    one.until("return document.getElementById('conflict').hidden || null").await?;
    assert_eq!(one.work("TF.load()").await?, json!({"by": "two", "n": 3}));
    // And what was here before is not lost: there is a way back, and forth again.
    one.click("save-back").await?;
    one.until("return document.getElementById('save-back').hidden || null").await?;
    assert_eq!(one.work("TF.load()").await?, json!({"by": "one", "n": 4}));
    assert!(one.work("TF.save({by: 'one', n: 5})").await?.as_str().is_some());
    one.click("take-theirs").await?;
    one.until("return document.getElementById('conflict').hidden || null").await?;
    // Deleted there: here the next save says so, and the one after makes it anew.
    one.drawer().await?;
    assert_eq!(one.press("delete", "delete-said").await?, "Deleted.");
    let said = two.work("TF.save({by: 'two', n: 5})").await?;
    assert!(said.as_str().is_some_and(|s| s.contains("was deleted on another device")), "{said}");
    assert_eq!(two.save("{by: 'two', n: 5}").await?, own);
    one.close().await?;
    two.close().await?;
    Ok(())
}

#[tokio::test]
async fn without_a_server_progress_waits_in_the_page() -> Result<()> {
    let (here, api) = saving()?;
    let one = Player::at(&here, "probe/keeps").await?;
    let code = one.save("{n: 1}").await?;
    api.stop()?;
    let said = one.work("TF.save({n: 2})").await?;
    assert!(said.as_str().is_some_and(|s| s.starts_with("unreachable: ") && s.contains("Play on")), "{said}");
    one.drawer().await?;
    assert!(one.text("save-state").await?.contains("does not answer"));
    assert_eq!(one.work("TF.load()").await?, json!({"n": 2}));
    let _api = here.api()?;
    assert_eq!(one.press("save-now", "save-state").await?, "Saved.");
    let two = Player::at(&here, "probe/keeps").await?;
    assert_eq!(two.work(&format!("TF.load('{code}')")).await?, json!({"n": 2}));
    // A device that is offline says so, and saves by itself once it is back.
    one.offline(true).await?;
    let said = one.work("TF.save({n: 3})").await?;
    assert!(said.as_str().is_some_and(|s| s.starts_with("offline: ")), "{said}");
    one.offline(false).await?;
    one.until("return document.getElementById('save-state').textContent === 'Saved.' || null").await?;
    assert_eq!(two.work(&format!("TF.load('{code}')")).await?, json!({"n": 3}));
    one.close().await?;
    two.close().await?;
    Ok(())
}

#[tokio::test]
async fn a_game_written_for_local_storage_saves_through_the_same_code() -> Result<()> {
    let game = "document.title = localStorage.getItem('score') ?? 'none';
        globalThis.play = n => { localStorage.score = n; localStorage.setItem('__proto__', 'x'); sessionStorage.n = n; }";
    let (here, _api) = installation(&[
        Probe::new("old", game, json!({"save_api": true})),
        Probe::new("undeclared", game, json!({})),
    ])?;
    let one = Player::at(&here, "probe/old").await?;
    assert_eq!(one.work("document.title").await?, json!("none"));
    one.work("play(41)").await?;
    // Nobody asked for it yet, so it is in the page and nowhere else.
    one.until("return document.getElementById('saves').classList.contains('due') || null").await?;
    one.drawer().await?;
    assert!(one.text("sees").await?.contains("Nothing yet"));
    assert_eq!(one.press("save-now", "save-state").await?, "Saved.");
    let code = one.text("code").await?;
    // The work loads itself again and goes on where it was, with what was stored a moment before.
    one.work("(play(42), setTimeout(() => location.reload()), 1)").await?;
    one.until("return document.querySelector('#stage iframe') ? true : null").await?;
    loop {
        if one.work("document.title").await? == json!("42") {
            break;
        }
    }
    assert_eq!(one.press("save-now", "save-state").await?, "Saved.");
    let two = Player::at(&here, "probe/old").await?;
    let said = two.load(&code, None).await?;
    assert!(said.starts_with("Loaded"), "{said}");
    assert_eq!(
        two.work("[document.title, sessionStorage.length, ({}).x ?? null]").await?,
        json!(["42", 0, null])
    );
    let plain = Player::at(&here, "probe/undeclared").await?;
    plain.work("play(1)").await?;
    assert_eq!(plain.work("[localStorage.score, TF.ready.then(r => 0)].length").await?, json!(2));
    assert_eq!(plain.browser.run("return document.getElementById('saves') === null").await?, json!(true));
    for player in [one, two, plain] {
        player.close().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_lost_answer_is_not_taken_for_another_device() -> Result<()> {
    let (here, _api) = saving()?;
    let one = Player::at(&here, "probe/keeps").await?;
    let code = one.save("{n: 1}").await?;
    // The request arrives, its answer does not.
    one.browser
        .run("const real = fetch; globalThis.fetch = async (...a) => { await real(...a); globalThis.fetch = real; throw new TypeError('lost') }")
        .await?;
    let said = one.work("TF.save({n: 2})").await?;
    assert!(said.as_str().is_some_and(|s| s.starts_with("unreachable: ")), "{said}");
    assert_eq!(one.save("{n: 3}").await?, code);
    ensure!(
        one.browser.run("return document.getElementById('conflict').hidden").await? == json!(true),
        "a conflict"
    );
    one.close().await?;
    Ok(())
}

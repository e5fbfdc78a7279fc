//! What a save costs the player: `TF.save` in a real browser, through nginx to the real `api`. For `./dev bench`.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::player::{Player, Probe, installation};

/// Saves that are timed; a work may make about as many in one go.
const SAVES: usize = 24;
/// Bytes of a state.
const STATE_BYTES: usize = 2048;

/// The table, as README.md quotes it.
pub fn table() -> Result<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure())
}

async fn measure() -> Result<String> {
    let (here, _api) = installation(&[Probe::new("keeps", "", json!({"save_api": true}))])?;
    let player = Player::at(&here, "probe/keeps").await?;
    player.work(&format!("TF.save('{}')", "x".repeat(STATE_BYTES))).await?; // what is loaded once is loaded now
    let idle = frames(&player, &format!("new Promise(done => setTimeout(done, {}))", SAVES * 20)).await?;
    let saving = frames(
        &player,
        &format!(
            "(async () => {{ const times = []; for (let i = 0; i < {SAVES}; i++) {{ const start = performance.now();
               await TF.save(String(i).padEnd({STATE_BYTES}, 'x')); times.push(performance.now() - start) }}
               return times.sort((a, b) => a - b) }})()"
        ),
    )
    .await?;
    player.close().await?;
    let time = |share: f64| saving.0[at(share)].as_f64().context("a time");
    let mut text = String::from(
        "`TF.save` of 2 KB in Chromium, from the work's call to its promise: encrypted in the page, sent through nginx,\n\
         committed, answered; beside it the longest that the page and the frame went without drawing\n\n\
         | what | p50 ms | p90 ms | longest gap between two frames of the page ms | of the work ms |\n|---|---|---|---|---|\n",
    );
    let _ = writeln!(text, "| nothing saved | | | {:.1} | {:.1} |", idle.1, idle.2);
    let _ = writeln!(
        text,
        "| {SAVES} saves in a row | {:.1} | {:.1} | {:.1} | {:.1} |",
        time(0.5)?,
        time(0.9)?,
        saving.1,
        saving.2
    );
    Ok(text)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a small count"
)]
fn at(share: f64) -> usize {
    (SAVES as f64 * share) as usize
}

/// Awaits a promise in the frame; its value, and the longest gap between two animation frames in page and work meanwhile.
async fn frames(player: &Player, promise: &str) -> Result<(Value, f64, f64)> {
    let watch = "globalThis.gap = 0; let last = performance.now(); (function next(now) {
        globalThis.gap = Math.max(gap, now - last); last = now; requestAnimationFrame(next) })(last)";
    player.browser.run(watch).await?;
    let answer = player
        .work(&format!("(() => {{ {watch}; return {promise}.then(value => [value ?? null, gap]) }})()"))
        .await?;
    let page = player.browser.run("return gap").await?;
    let number = |value: &Value| value.as_f64().context("a gap");
    Ok((answer[0].clone(), number(&page)?, number(&answer[1])?))
}

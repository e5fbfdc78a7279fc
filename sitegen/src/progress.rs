//! A progress bar where a person watches, nothing where a script does.

use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressStyle};

/// Whether and where progress is shown.
pub(crate) struct Progress {
    shown: bool,
}

impl Progress {
    /// Shown on a terminal, unless the output is for a script.
    pub(crate) fn new(quiet: bool) -> Self {
        Self { shown: !quiet && std::io::stderr().is_terminal() }
    }

    /// Runs `work` with a function to call once for each of `count` steps.
    pub(crate) fn count<T>(&self, what: &str, count: usize, work: impl FnOnce(&(dyn Fn() + Sync)) -> T) -> T {
        let bar = if self.shown { ProgressBar::new(count as u64) } else { ProgressBar::hidden() };
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}") {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        let result = work(&|| bar.inc(1));
        bar.finish_and_clear();
        result
    }
}

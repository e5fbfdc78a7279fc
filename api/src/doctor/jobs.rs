//! What is to be done: the catalogue's schema, jobs that are stuck or failed, events without a publish, the last verification.
//!
//! Called by the doctor with what `catalog::health` saw. It reads nothing itself but the name of the tree that is served.

use catalog::health::{Health, Jobs};
use catalog::{CatalogError, Data};
use policy::{Config, limits};

use super::{Seen, note, ok, wrong};
use crate::work::{self, now};

type Found = (&'static str, Seen, &'static str);

const WORKER: &str =
    "start the worker: systemctl start tinyfiles-work, or ./dev up; its log says why a job fails";

/// Looks at all of it.
pub(super) fn look(health: &Result<Health, CatalogError>, config: &Config) -> Vec<Found> {
    let mut found = vec![(
        "catalogue",
        schema(health),
        "`sitegen publish` makes it and brings it up to date; a damaged one: `api restore`",
    )];
    let Some(jobs) = health.as_ref().ok().and_then(|h| h.jobs.as_ref()) else { return found };
    let live =
        Data::open(&config.data).ok().and_then(|data| data.live().ok().flatten()).map(|d| d.to_string());
    found.extend([
        (
            "audit",
            audit(jobs).into(),
            "compare it with a backup: somebody wrote to the file; `api audit` names the row",
        ),
        ("jobs", waiting(jobs, now()).into(), WORKER),
        (
            "failed jobs",
            failed(jobs).into(),
            "the worker's log says more; their creators were told, and may submit again",
        ),
        ("outbox", outbox(jobs).into(), "run `sitegen publish`; then look at the worker's log"),
        ("last publish", published(jobs, live.as_deref()), ""),
        (
            "last verify",
            verified(jobs, now()).into(),
            "run `sitegen verify`; the worker repairs with the next publish",
        ),
    ]);
    found
}

fn schema(health: &Result<Health, CatalogError>) -> Seen {
    match health {
        Err(error) => wrong(error.to_string()),
        Ok(Health { damage: Some(what), .. }) => wrong(format!("it is damaged: {what}")),
        Ok(Health { schema: 0, .. }) => wrong("it is empty"),
        Ok(Health { schema, known, .. }) if schema != known => {
            wrong(format!("it has schema {schema}, this program knows {known}"))
        }
        Ok(Health { schema, .. }) => ok(format!("schema {schema}; integrity_check: ok")),
    }
}

fn audit(jobs: &Jobs) -> Result<String, String> {
    match jobs.audit_broken_at {
        None => Ok("the chain of decisions holds".to_owned()),
        Some(row) => Err(format!("row {row} is not what it was when it was written")),
    }
}

fn waiting(jobs: &Jobs, now: i64) -> Result<String, String> {
    let open = format!("{} open", jobs.open);
    match jobs.untouched_since.map(|since| now - since) {
        Some(seconds) if seconds > i64::from(limits().job.lease_seconds) => {
            Err(format!("{open}; for {seconds} s one has been due and nobody takes it"))
        }
        _ => Ok(format!("{open}, none left lying")),
    }
}

fn failed(jobs: &Jobs) -> Result<String, String> {
    let (count, why) = &jobs.given_up;
    match &jobs.retried {
        Some((kind, attempts, why)) => Err(format!("{kind} was begun {attempts} times and failed: {why}")),
        None if *count > 0 => Err(format!("{count} given up within a day; one because: {why}")),
        None => Ok("none within a day".to_owned()),
    }
}

fn outbox(jobs: &Jobs) -> Result<String, String> {
    match jobs.unpublished_since {
        None => Ok("each decision was followed by a publish, or one waits".to_owned()),
        Some(at) => Err(format!("what was decided at {at} (seconds since 1970) was never published")),
    }
}

fn published(jobs: &Jobs, live: Option<&str>) -> Seen {
    match (&jobs.published, live) {
        (Some(made), Some(live)) if made == live => ok("the worker's last tree is the one that is served"),
        (Some(made), _) => {
            note(format!("the worker's last tree was {made}; another was published or rolled back by hand"))
        }
        (None, _) => note("the worker has not published anything yet"),
    }
}

fn verified(jobs: &Jobs, now: i64) -> Result<String, String> {
    let hours_max = 2 * i64::from(limits().job.verify_hours);
    match &jobs.verified {
        None => Err("the served bytes were never verified by the worker".to_owned()),
        Some((at, _)) if (now - at) / 3_600 > hours_max => {
            Err(format!("{} hours ago; it should be every {}", (now - at) / 3_600, limits().job.verify_hours))
        }
        Some((_, found)) if *found != work::verdict(0, 0) => Err(found.clone()),
        Some((at, found)) => Ok(format!("{} minutes ago: {found}", (now - at) / 60)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::State;

    #[test]
    fn a_schema_is_known_or_not() {
        let of = |schema, damage: Option<&str>| {
            schema_state(Ok(Health { schema, known: 2, damage: damage.map(str::to_owned), jobs: None }))
        };
        let schema_missing = Health::of(std::path::Path::new("/nowhere/catalog.db"), 0);
        assert_eq!(schema_state(schema_missing), State::Wrong);
        assert_eq!(of(2, None), State::Ok);
        for bad in [of(0, None), of(1, None), of(3, None), of(2, Some("page 7"))] {
            assert_eq!(bad, State::Wrong);
        }
    }

    fn schema_state(health: Result<Health, CatalogError>) -> State {
        schema(&health).0
    }

    #[test]
    fn what_is_stuck_is_named() {
        let well = Jobs { verified: Some((1_000, work::verdict(0, 0))), ..Jobs::default() };
        let hour = 3_600;
        assert!(
            audit(&well).is_ok()
                && waiting(&well, 0).is_ok()
                && failed(&well).is_ok()
                && outbox(&well).is_ok()
        );
        assert!(verified(&well, 1_000 + 48 * hour).is_ok());
        assert!(verified(&well, 1_000 + 49 * hour).is_err());
        assert!(verified(&Jobs::default(), 0).is_err());
        assert!(verified(&Jobs { verified: Some((0, work::verdict(1, 0))), ..Jobs::default() }, 0).is_err());
        assert!(audit(&Jobs { audit_broken_at: Some(3), ..well.clone() }).unwrap_err().contains("row 3"));
        let late = Jobs { open: 1, untouched_since: Some(100), ..well.clone() };
        assert!(waiting(&late, 160).is_ok() && waiting(&late, 161).is_err());
        let again = Jobs { retried: Some(("catalog_regen".into(), 3, "no disk".into())), ..well.clone() };
        assert!(failed(&again).unwrap_err().contains("3 times and failed: no disk"));
        assert!(failed(&Jobs { given_up: (1, "why".into()), ..well.clone() }).unwrap_err().contains("why"));
        assert!(outbox(&Jobs { unpublished_since: Some(7), ..well.clone() }).is_err());
        let made = Jobs { published: Some("a".into()), ..well };
        assert_eq!((published(&made, Some("a")).0, published(&made, Some("b")).0), (State::Ok, State::Note));
    }
}

//! From a claimed pseudonym to a published work in one catalogue: jobs and their leases, decisions, the audit.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails where it stands")]

use catalog::job::{After, JobError, Kind, Leased};
use catalog::member::{Member, MemberError, Role as MemberRole};
use catalog::review::{DecideError, Decision};
use catalog::submission::{State, SubmitError};
use catalog::{Catalog, Day, Digest, Manifest, Role, Slug, Work, WorkFile};

const LEASE: i64 = 60;

struct Here {
    folder: tempfile::TempDir,
    catalog: Catalog,
}

impl Here {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let catalog = Catalog::open(&folder.path().join("catalog.db")).unwrap();
        Self { folder, catalog }
    }

    fn member(&mut self, name: &str) -> Member {
        let thumbprint = format!("{name:-<43}");
        self.catalog.claim(&thumbprint, "{}", &slug(name), day("2026-11-30")).unwrap()
    }

    fn moderator(&mut self, name: &str) -> Member {
        let member = self.member(name);
        self.catalog.grant(&member.pseudonym, MemberRole::Moderator, 0).unwrap();
        self.catalog.member(&member.thumbprint).unwrap().unwrap()
    }

    /// A version that waits for its moderator.
    fn pending(&mut self, member: &Member, job: &str, payload: &[u8]) -> i64 {
        self.catalog.submit(job, member, 100, 99).unwrap();
        let leased = self.lease(&format!("lease of {job}"), 100).unwrap();
        assert_eq!(leased.id, job);
        assert!(self.catalog.accept(&leased, &work(member, payload), "{}", 101).unwrap());
        self.catalog.pending().unwrap().last().unwrap().row
    }

    fn lease(&mut self, word: &str, now: i64) -> Option<Leased> {
        self.catalog.lease(word, now, LEASE).unwrap()
    }
}

fn slug(text: &str) -> Slug {
    text.parse().unwrap()
}

fn day(text: &str) -> Day {
    text.parse().unwrap()
}

fn work(member: &Member, payload: &[u8]) -> Work {
    let sidecar = r#"{"id": "kite"}"#;
    let file = |name: &str, role, bytes: &[u8]| WorkFile {
        name: name.into(),
        role,
        digest: Digest::of(bytes),
        bytes: bytes.len() as u64,
    };
    Work {
        creator: member.pseudonym.clone(),
        slug: slug("kite"),
        manifest: Manifest::parse(sidecar.as_bytes()).unwrap(),
        released: day("2026-11-30"),
        updated: day("2026-11-30"),
        files: vec![
            file("index.html", Role::Payload, payload),
            file("work.json", Role::Sidecar, sidecar.as_bytes()),
        ],
    }
}

fn decision<'a>(moderator: &'a Member, reason: &'a str) -> Decision<'a> {
    Decision { moderator, reason, now: 500, tree: None }
}

#[test]
fn a_pseudonym_has_one_key_and_no_earlier_works() {
    let mut here = Here::new();
    let ann = here.member("ann");
    assert_eq!(ann.roles, [MemberRole::Creator, MemberRole::Rater]);
    let claim = |here: &mut Here, key: &str, name: &str| {
        here.catalog.claim(&format!("{key:-<43}"), "{}", &slug(name), day("2026-11-30"))
    };
    assert!(matches!(claim(&mut here, "zoe", "ann"), Err(MemberError::Taken(_))));
    assert!(matches!(claim(&mut here, "ann", "zoe"), Err(MemberError::Known(name)) if name == slug("ann")));
    let mut moth = ann;
    moth.pseudonym = slug("moth");
    here.catalog.publish(&[work(&moth, b"1")]).unwrap();
    assert!(matches!(claim(&mut here, "zoe", "moth"), Err(MemberError::Taken(_))));
    assert_eq!(here.catalog.members().unwrap().len(), 1);
}

#[test]
fn an_older_catalogue_is_brought_up_to_date_with_its_works() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalog.db");
    let before = rusqlite::Connection::open(&path).unwrap();
    before.execute_batch(include_str!("schema-1.sql")).unwrap();
    drop(before);
    let mut catalog = Catalog::open(&path).unwrap();
    assert_eq!(catalog.published().unwrap().len(), 1);
    catalog.claim(&"a".repeat(43), "{}", &slug("ann"), day("2026-11-30")).unwrap();
}

#[test]
fn a_lease_is_held_by_one_and_finishes_once() {
    let mut here = Here::new();
    let ann = here.member("ann");
    here.catalog.submit("a", &ann, 100, 9).unwrap();
    here.catalog.submit("b", &ann, 100, 9).unwrap();
    assert_eq!(here.catalog.submission("b").unwrap().unwrap().ahead, Some(1));
    let first = here.lease("1", 100).unwrap();
    assert_eq!((first.id.as_str(), first.kind, first.attempts), ("a", Kind::Intake, 1));
    assert_eq!(here.lease("2", 100).unwrap().id, "b");
    assert_eq!(here.lease("3", 100), None);
    here.catalog.renew(&first, 150, LEASE).unwrap();
    // Of the two leases only the one that was not renewed has ended.
    assert_eq!(here.lease("4", 165).unwrap().id, "b");
    assert_eq!(here.lease("5", 165), None);
    // The first worker stood still for too long: another one took the job, and only that one can finish it.
    let second = here.lease("6", 210).unwrap();
    assert_eq!((second.id.as_str(), second.attempts), ("a", 2));
    assert!(matches!(here.catalog.renew(&first, 211, LEASE), Err(JobError::LeaseLost(_))));
    assert!(matches!(here.catalog.reject(&first, "", "{}", 211), Err(JobError::LeaseLost(_))));
    assert_eq!(here.catalog.submission("a").unwrap().unwrap().state, State::Received);
    here.catalog.reject(&second, "kite", "{}", 212).unwrap();
    assert_eq!(here.catalog.submission("a").unwrap().unwrap().state, State::Rejected);
}

#[test]
fn a_lease_whose_holder_is_gone_ends_at_once() {
    let mut here = Here::new();
    let ann = here.member("ann");
    here.catalog.submit("a", &ann, 100, 9).unwrap();
    here.lease("gone.1", 100).unwrap();
    assert_eq!(here.catalog.leases().unwrap(), ["gone.1"]);
    assert_eq!(here.lease("2", 101), None);
    here.catalog.end_lease("gone.1", 101).unwrap();
    assert_eq!(here.lease("2", 101).unwrap().id, "a");
}

#[test]
fn a_clock_that_jumps_back_does_not_make_a_lease_eternal() {
    let mut here = Here::new();
    let ann = here.member("ann");
    here.catalog.submit("a", &ann, 1_000, 9).unwrap();
    here.lease("1", 1_000).unwrap();
    assert_eq!(here.lease("2", 1_010), None);
    assert_eq!(here.lease("3", 900).unwrap().attempts, 2);
}

#[test]
fn a_clock_that_jumps_back_puts_no_job_off_and_closes_nobody_out() {
    let mut here = Here::new();
    let ann = here.member("ann");
    // A year ahead, as a machine without a battery may be until it has asked somebody.
    let ahead = 365 * 24 * 3_600;
    here.catalog.submit("a", &ann, ahead, 2).unwrap();
    here.catalog.submit("b", &ann, ahead, 2).unwrap();
    let leased = here.lease("1", ahead).unwrap();
    here.catalog.fail(&leased, After::Again(ahead + 300), "no space", ahead).unwrap();
    here.catalog.enqueue("next", Kind::Verify, "", ahead).unwrap();
    // Now it knows the time.
    here.catalog.submit("c", &ann, 1_000, 2).unwrap();
    for expected in ["a", "b", "c"] {
        assert_eq!(here.lease(expected, 1_000).unwrap().id, expected);
    }
    assert_eq!(here.lease("5", 1_000), None, "a verification of another day stays one");
    // Put off by as long as a job may be, it is not begun earlier.
    here.catalog.enqueue("later", Kind::CatalogRegen, "", 1_050).unwrap();
    assert_eq!(here.lease("6", 1_049), None);
    assert_eq!(here.lease("6", 1_050).unwrap().id, "later");
}

#[test]
fn what_fails_is_tried_again_later_and_at_last_given_up() {
    let mut here = Here::new();
    let ann = here.member("ann");
    here.catalog.submit("a", &ann, 100, 9).unwrap();
    let leased = here.lease("1", 100).unwrap();
    here.catalog.fail(&leased, After::Again(130), "no space", 101).unwrap();
    assert_eq!(here.lease("2", 129), None);
    assert_eq!(here.catalog.next_due().unwrap(), Some(130));
    let leased = here.lease("2", 130).unwrap();
    assert_eq!(leased.attempts, 2);
    here.catalog.postpone(&leased, 200, "the gate is closed").unwrap();
    assert_eq!(here.catalog.submission("a").unwrap().unwrap().note, "the gate is closed");
    let leased = here.lease("3", 200).unwrap();
    assert_eq!(leased.attempts, 2, "waiting is not failing");
    here.catalog.fail(&leased, After::GivenUp, "no space", 201).unwrap();
    let given_up = here.catalog.submission("a").unwrap().unwrap();
    assert_eq!((given_up.state, given_up.note.as_str()), (State::Failed, "no space"));
    assert_eq!(here.lease("4", 9_999), None);
}

#[test]
fn a_member_submits_so_often_an_hour() {
    let mut here = Here::new();
    let ann = here.member("ann");
    here.catalog.submit("a", &ann, 100, 2).unwrap();
    here.catalog.submit("b", &ann, 200, 2).unwrap();
    assert!(matches!(here.catalog.submit("c", &ann, 300, 2), Err(SubmitError::TooMany(2))));
    assert!(here.catalog.submission("c").unwrap().is_none());
    here.catalog.submit("c", &ann, 100 + 3_600, 2).unwrap();
}

#[test]
fn an_approval_is_a_row_an_event_a_job_and_an_audit_row_or_nothing() {
    let mut here = Here::new();
    let (ann, mod_) = (here.member("ann"), here.moderator("mod"));
    let row = here.pending(&ann, "a", b"1");
    assert!(here.catalog.published().unwrap().is_empty());
    assert!(matches!(
        here.catalog.approve(row, day("2026-12-01"), &decision(&ann, "")),
        Err(DecideError::NotModerator(_))
    ));
    assert_eq!(here.lease("1", 500), None, "a refused decision leaves no job");
    here.catalog.approve(row, day("2026-12-01"), &decision(&mod_, "fun")).unwrap();
    let served = here.catalog.published().unwrap();
    assert_eq!((served[0].released, served[0].updated), (day("2026-12-01"), day("2026-12-01")));
    let regen = here.lease("1", 500).unwrap();
    assert_eq!((regen.kind, regen.subject.as_str()), (Kind::CatalogRegen, "/ann/kite/"));
    here.catalog.regenerated(&regen, "old", "new", "", 501).unwrap();
    let audit = here.catalog.audit(9).unwrap();
    let actions: Vec<_> = audit.iter().map(|a| (a.actor.as_str(), a.action.as_str())).collect();
    assert_eq!(actions, [("worker", "publish"), ("mod", "approve"), ("operator", "grant")]);
    assert_eq!((audit[0].tree_before.as_str(), audit[0].tree_after.as_str()), ("old", "new"));
    assert!(audit[1].detail.contains("fun") && audit[1].detail.contains(&Digest::of(b"1").to_string()));
    assert_eq!(here.catalog.submission("a").unwrap().unwrap().state, State::Published);
}

#[test]
fn of_two_moderators_one_is_told() {
    let mut here = Here::new();
    let (ann, one, two) = (here.member("ann"), here.moderator("one"), here.moderator("two"));
    let row = here.pending(&ann, "a", b"1");
    here.catalog.decline(row, &decision(&one, "it is an advertisement")).unwrap();
    let late = here.catalog.approve(row, day("2026-12-01"), &decision(&two, ""));
    assert!(matches!(late, Err(DecideError::Decided(_))));
    let declined = here.catalog.submission("a").unwrap().unwrap();
    assert_eq!((declined.state, declined.note.as_str()), (State::Declined, "it is an advertisement"));
    assert!(here.catalog.file_digests().unwrap().is_empty(), "a refused version frees its bytes");
}

#[test]
fn a_role_revoked_a_moment_ago_is_gone() {
    let mut here = Here::new();
    let (ann, mod_) = (here.member("ann"), here.moderator("mod"));
    let row = here.pending(&ann, "a", b"1");
    here.catalog.revoke(&mod_.pseudonym, MemberRole::Moderator, 499).unwrap();
    assert!(mod_.is(MemberRole::Moderator), "the member as the request found it");
    let decided = here.catalog.approve(row, day("2026-12-01"), &decision(&mod_, ""));
    assert!(matches!(decided, Err(DecideError::NotModerator(_))));
    assert_eq!(here.catalog.pending().unwrap().len(), 1);
}

#[test]
fn an_update_waits_beside_what_is_served_and_keeps_its_first_day() {
    let mut here = Here::new();
    let (ann, mod_) = (here.member("ann"), here.moderator("mod"));
    let row = here.pending(&ann, "a", b"1");
    here.catalog.approve(row, day("2026-12-01"), &decision(&mod_, "")).unwrap();
    let regen = here.lease("1", 500).unwrap();
    here.catalog.finish(&regen, "").unwrap();
    here.pending(&ann, "b", b"2");
    let newer = here.pending(&ann, "c", b"3");
    assert_eq!(here.catalog.submission("b").unwrap().unwrap().state, State::Withdrawn);
    assert_eq!(here.catalog.pending().unwrap().len(), 1);
    assert_eq!(here.catalog.published().unwrap()[0].file(Role::Payload).unwrap().digest, Digest::of(b"1"));
    here.catalog.approve(newer, day("2026-12-09"), &decision(&mod_, "")).unwrap();
    let served = here.catalog.published().unwrap();
    assert_eq!(served[0].file(Role::Payload).unwrap().digest, Digest::of(b"3"));
    assert_eq!((served[0].released, served[0].updated), (day("2026-12-01"), day("2026-12-09")));
    here.catalog.take_down(&slug("ann"), &slug("kite"), &decision(&mod_, "asked by its maker")).unwrap();
    assert_eq!(here.catalog.gone().unwrap(), [(slug("ann"), slug("kite"))]);
    let told = here.catalog.submission("c").unwrap().unwrap();
    assert_eq!(
        (told.state, told.note.as_str()),
        (State::Withdrawn, "A moderator took it down: asked by its maker")
    );
    let again = here.catalog.take_down(&slug("ann"), &slug("kite"), &decision(&mod_, ""));
    assert!(matches!(again, Err(DecideError::Decided(_))));
}

#[test]
fn a_creator_takes_a_work_of_their_own_off_the_site() {
    let mut here = Here::new();
    let (ann, zoe, mod_) = (here.member("ann"), here.member("zoe"), here.moderator("mod"));
    let row = here.pending(&ann, "a", b"1");
    assert!(!here.catalog.retire(&ann, &slug("kite"), 400).unwrap(), "it is not published yet");
    here.catalog.approve(row, day("2026-12-01"), &decision(&mod_, "")).unwrap();
    assert!(!here.catalog.retire(&zoe, &slug("kite"), 501).unwrap(), "it is not zoe's");
    assert!(here.catalog.retire(&ann, &slug("kite"), 502).unwrap());
    assert!(!here.catalog.retire(&ann, &slug("kite"), 503).unwrap());
    assert_eq!(here.catalog.gone().unwrap(), [(slug("ann"), slug("kite"))]);
    assert_eq!(here.catalog.submission("a").unwrap().unwrap().state, State::Withdrawn);
    let last = &here.catalog.audit(9).unwrap()[0];
    assert_eq!(
        (last.actor.as_str(), last.action.as_str(), last.subject.as_str()),
        ("ann", "retire", "/ann/kite/")
    );
}

#[test]
fn what_is_taken_back_is_not_accepted_and_leaves_no_page() {
    let mut here = Here::new();
    let (ann, zoe) = (here.member("ann"), here.member("zoe"));
    here.catalog.submit("a", &ann, 100, 9).unwrap();
    let leased = here.lease("1", 100).unwrap();
    assert!(!here.catalog.take_back("a", &zoe, 101).unwrap(), "only its creator takes it back");
    assert!(here.catalog.take_back("a", &ann, 101).unwrap());
    let late = here.catalog.accept(&leased, &work(&ann, b"1"), "{}", 102);
    assert!(matches!(late, Err(JobError::LeaseLost(_))));
    here.pending(&ann, "b", b"1");
    assert!(here.catalog.take_back("b", &ann, 103).unwrap());
    assert!(here.catalog.pending().unwrap().is_empty() && here.catalog.gone().unwrap().is_empty());
}

#[test]
fn python_that_waits_is_given_back_and_nothing_else() {
    let mut here = Here::new();
    let ann = here.member("ann");
    for (job, is_python) in [("a", true), ("b", false)] {
        here.catalog.submit(job, &ann, 100, 9).unwrap();
        let leased = here.lease(job, 100).unwrap();
        here.catalog.note_stage(&leased, "checks", is_python).unwrap();
        here.catalog.postpone(&leased, 200, "the gate is closed").unwrap();
    }
    assert_eq!(here.catalog.return_python("the kernel changed", 150).unwrap(), ["a"]);
    assert_eq!(here.catalog.submission("a").unwrap().unwrap().state, State::Returned);
    assert_eq!(here.lease("1", 200).unwrap().id, "b");
    assert_eq!(here.lease("2", 200), None);
}

#[test]
fn one_regeneration_serves_all_approvals_that_wait_for_it() {
    let mut here = Here::new();
    let (ann, zoe, mod_) = (here.member("ann"), here.member("zoe"), here.moderator("mod"));
    let (first, second) = (here.pending(&ann, "a", b"1"), here.pending(&zoe, "b", b"2"));
    here.catalog.approve(first, day("2026-12-01"), &decision(&mod_, "")).unwrap();
    let running = here.lease("1", 500).unwrap();
    // This one has read the catalogue already, so the next approval needs another.
    here.catalog.approve(second, day("2026-12-01"), &decision(&mod_, "")).unwrap();
    assert_eq!(here.lease("2", 500), None, "two at once would be in each other's way");
    here.catalog.fail(&running, After::Again(900), "no space", 501).unwrap();
    assert_eq!(here.lease("2", 501).unwrap().subject, "/ann/kite/".replace("ann", "zoe"));
    assert_eq!(here.lease("3", 502), None);
}

#[test]
fn the_audit_is_append_only_and_tells_when_it_was_not() {
    let mut here = Here::new();
    for name in ["a", "b", "c"] {
        here.moderator(name);
    }
    assert_eq!(here.catalog.check_audit().unwrap(), Ok(3));
    let file = rusqlite::Connection::open(here.folder.path().join("catalog.db")).unwrap();
    for change in ["UPDATE audit SET actor = 'x' WHERE id = 2", "DELETE FROM audit WHERE id = 3"] {
        let refused = file.execute(change, []).unwrap_err().to_string();
        assert!(refused.contains("append-only"), "{refused}");
    }
    file.execute_batch("DROP TRIGGER audit_is_never_changed").unwrap();
    file.execute("UPDATE audit SET actor = 'x' WHERE id = 2", []).unwrap();
    assert_eq!(here.catalog.check_audit().unwrap(), Err(2));
}

#[test]
fn a_preview_ends_with_its_time_and_with_the_decision() {
    let mut here = Here::new();
    let (ann, mod_) = (here.member("ann"), here.moderator("mod"));
    let row = here.pending(&ann, "a", b"1");
    let token = "t".repeat(32);
    assert!(here.catalog.open_preview(row, &token, 200, 260).unwrap());
    assert_eq!(here.lease("1", 200).unwrap().kind, Kind::Preview);
    assert_eq!(here.catalog.preview(&token, 259).unwrap().unwrap().row, row);
    assert!(here.catalog.preview(&token, 260).unwrap().is_none());
    here.catalog.decline(row, &decision(&mod_, "no")).unwrap();
    assert!(here.catalog.preview(&token, 259).unwrap().is_none());
    assert!(!here.catalog.open_preview(row, &"u".repeat(32), 200, 260).unwrap());
}

#[test]
fn a_damaged_work_is_taken_down_once_and_written_down() {
    let mut here = Here::new();
    let ann = here.member("ann");
    here.catalog.publish(&[work(&ann, b"1")]).unwrap();
    let down = |here: &mut Here| {
        here.catalog.take_down_damaged(&slug("ann"), &slug("kite"), "index.html is not its digest", "t", 7)
    };
    assert!(down(&mut here).unwrap());
    assert!(!down(&mut here).unwrap());
    assert_eq!(here.catalog.audit(9).unwrap()[0].action, "verify_failed");
    assert_eq!(here.lease("1", 7).unwrap().kind, Kind::CatalogRegen);
}

#[test]
fn a_work_has_one_rating_of_a_member_and_none_of_its_maker() {
    use catalog::rating::{RateError, Rating, Stars};
    let mut here = Here::new();
    let (ann, zoe, mod_) = (here.member("ann"), here.member("zoe"), here.moderator("mod"));
    let kite = (&slug("ann"), &slug("kite"));
    let rate = |here: &mut Here, member: &Member, stars| {
        here.catalog.rate(member, kite, Stars::parse(stars).unwrap(), 500, 60)
    };
    assert!(matches!(rate(&mut here, &zoe, 5), Err(RateError::NotPublished(_))));
    let row = here.pending(&ann, "a", b"1");
    here.catalog.approve(row, day("2026-12-01"), &decision(&mod_, "")).unwrap();
    let regen = here.lease("1", 500).unwrap();
    here.catalog.regenerated(&regen, "", "", "", 500).unwrap();
    assert!(matches!(rate(&mut here, &ann, 5), Err(RateError::Own)));
    for (member, stars) in [(&zoe, 1), (&zoe, 5), (&mod_, 4)] {
        rate(&mut here, member, stars).unwrap();
    }
    let key = (slug("ann"), slug("kite"));
    assert_eq!(here.catalog.ratings().unwrap()[&key], Rating { tenths: 45, members: 2 });
    let given = [&zoe, &mod_, &ann].map(|m| here.catalog.stars_of(m, kite.0, kite.1).unwrap());
    assert_eq!(given, [Some(5), Some(4), None]);
    here.catalog.revoke(&zoe.pseudonym, MemberRole::Rater, 500).unwrap();
    assert!(matches!(rate(&mut here, &zoe, 1), Err(RateError::NotRater(_))));
    // Nobody waits for a rating, and nobody has to wait because of one.
    assert_eq!(here.lease("2", 559), None);
    here.catalog.take_down(&slug("ann"), &slug("kite"), &decision(&mod_, "why")).unwrap();
    assert_eq!(here.lease("2", 500).unwrap().kind, Kind::CatalogRegen);
    assert_eq!(here.lease("3", 501), None);
    assert_eq!([0, 6, 256].map(Stars::parse), [None, None, None]);
}

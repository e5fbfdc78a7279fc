//! What a well-behaved client may rely on.

use crate::client::{BYTES, JSON, NEW, save};
use crate::server::Server;

#[test]
fn a_save_is_made_loaded_changed_and_deleted() {
    let server = Server::new();
    let mut client = server.client();
    let path = save(1);
    assert_eq!(client.request("GET", &path, &[], b"").problem(), "not-found");
    let body: Vec<u8> = (0..=255).collect();
    let made = client.request("PUT", &path, &[NEW, BYTES], &body);
    assert_eq!((made.status, made.header("cache-control")), (201, Some("no-store")));
    let loaded = client.request("GET", &path, &[], b"");
    assert_eq!((loaded.status, &loaded.body), (200, &body));
    assert_eq!(loaded.header("content-type"), Some("application/octet-stream"));
    assert_eq!(loaded.header("cache-control"), Some("no-store"));
    assert_eq!(loaded.tag(), made.tag());
    let head = client.request("HEAD", &path, &[], b"");
    assert_eq!((head.status, head.header("content-length"), head.body.len()), (200, Some("256"), 0));

    let changed = client.request("PUT", &path, &[("If-Match", &made.tag()), JSON], b"{\"level\": 3}");
    assert_eq!(changed.status, 204);
    assert_ne!(changed.tag(), made.tag());
    let loaded = client.request("GET", &path, &[], b"");
    assert_eq!(
        (loaded.header("content-type"), &loaded.body[..]),
        (Some("application/json"), &b"{\"level\": 3}"[..])
    );

    let gone = client.request("DELETE", &path, &[("If-Match", &changed.tag())], b"");
    assert_eq!((gone.status, gone.body.len()), (204, 0));
    assert_eq!(client.request("GET", &path, &[], b"").status, 404);
    assert_eq!(client.request("DELETE", &path, &[("If-Match", &changed.tag())], b"").problem(), "not-found");
}

#[test]
fn no_device_overwrites_another_unasked() {
    let server = Server::new();
    let mut client = server.client();
    let path = save(1);
    let first = client.request("PUT", &path, &[NEW, BYTES], b"one").tag();
    let refused = client.request("PUT", &path, &[NEW, BYTES], b"two");
    assert_eq!(
        (refused.problem().as_str(), refused.status, refused.tag()),
        ("newer-save", 412, first.clone())
    );
    for method in ["PUT", "DELETE"] {
        let refused = client.request(method, &path, &[BYTES], b"two");
        assert_eq!((refused.problem().as_str(), refused.status), ("precondition-required", 428));
    }
    let second = client.request("PUT", &path, &[("If-Match", &first), BYTES], b"two").tag();
    for method in ["PUT", "DELETE"] {
        let refused = client.request(method, &path, &[("If-Match", &first), BYTES], b"three");
        assert_eq!((refused.status, refused.tag()), (412, second.clone()), "{method}");
    }
    assert_eq!(client.request("GET", &path, &[], b"").body, b"two");

    // Deleted and made anew, it has no tag that anybody knows from before.
    assert_eq!(client.request("DELETE", &path, &[("If-Match", &second)], b"").status, 204);
    assert_eq!(client.request("PUT", &path, &[("If-Match", &second), BYTES], b"x").problem(), "not-found");
    client.request("PUT", &path, &[NEW, BYTES], b"anew");
    for old in [&first, &second] {
        assert_eq!(client.request("PUT", &path, &[("If-Match", old), BYTES], b"x").status, 412);
    }
    assert_eq!(client.request("GET", &path, &[], b"").body, b"anew");
}

#[test]
fn of_two_devices_that_save_at_once_one_wins_and_the_other_is_told() {
    let server = Server::new();
    let path = save(1);
    let tag = server.client().request("PUT", &path, &[NEW, BYTES], b"start").tag();
    let saves: Vec<_> = std::thread::scope(|scope| {
        let devices: Vec<_> = (0..8_u8)
            .map(|i| {
                let (mut client, path, tag) = (server.client(), &path, &tag);
                scope.spawn(move || (i, client.request("PUT", path, &[("If-Match", tag), BYTES], &[i])))
            })
            .collect();
        devices.into_iter().map(|d| d.join().unwrap()).collect()
    });
    let winners: Vec<_> = saves.iter().filter(|(_, a)| a.status == 204).collect();
    let [(winner, answer)] = winners[..] else { panic!("{saves:?}") };
    for (_, loser) in saves.iter().filter(|(i, _)| i != winner) {
        assert_eq!((loser.problem().as_str(), loser.tag()), ("newer-save", answer.tag()));
    }
    assert_eq!(server.client().request("GET", &path, &[], b"").body, [*winner]);
}

#[test]
fn saves_outlive_the_server() {
    let mut server = Server::new();
    let big: Vec<u8> = (0..policy::limits().save.body_bytes_max).map(|i| i.to_le_bytes()[0]).collect();
    let tag = server.client().request("PUT", &save(1), &[NEW, BYTES], &big).tag();
    server = server.restarted();
    let loaded = server.client().request("GET", &save(1), &[], b"");
    assert_eq!((loaded.tag(), loaded.body), (tag, big));
}

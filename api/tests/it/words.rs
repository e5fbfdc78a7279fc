//! The word of a plaintext save, from right to ten thousand wrong.

use policy::limits;

use crate::client::{BYTES, JSON, NEW, save};
use crate::server::Server;

const WORD: (&str, &str) = ("Save-Word", "moth");
const OTHER: (&str, &str) = ("Save-Word", "lamp");

#[test]
fn a_word_guards_loading_changing_and_deleting() {
    let server = Server::new();
    let mut client = server.client();
    let path = save(1);
    let tag = client.request("PUT", &path, &[NEW, JSON, WORD], b"1").tag();
    // First the word, then everything else about the record: without it, no tag is learnt.
    for headers in [&[OTHER][..], &[]] {
        for method in ["GET", "PUT", "DELETE"] {
            let refused = client.request(method, &path, &[headers, &[NEW, JSON]].concat(), b"2");
            assert_eq!(
                (refused.problem().as_str(), refused.header("etag")),
                ("wrong-word", None),
                "{method}"
            );
            let right = client.request("GET", &path, &[WORD], b"");
            assert_eq!((right.status, &right.body[..]), (200, &b"1"[..]));
        }
    }
    assert_eq!(client.request("PUT", &path, &[NEW, JSON, WORD], b"2").problem(), "newer-save");
    let tag = client.request("PUT", &path, &[("If-Match", &tag), JSON, WORD], b"2").tag();
    assert_eq!(client.request("GET", &path, &[], b"").status, 403, "a change keeps the word");
    assert_eq!(client.request("DELETE", &path, &[("If-Match", &tag), WORD], b"").status, 204);
    assert_eq!(client.request("GET", &path, &[], b"").status, 404);
}

#[test]
fn a_word_comes_and_goes_with_the_position() {
    let server = Server::new();
    let mut client = server.client();
    let path = save(1);
    let tag = client.request("PUT", &path, &[NEW, BYTES, WORD], b"x").tag();
    assert_eq!(client.request("GET", &path, &[], b"").status, 200, "ciphertext has no word");
    let tag = client.request("PUT", &path, &[("If-Match", &tag), JSON], b"1").tag();
    assert_eq!(client.request("GET", &path, &[OTHER], b"").status, 200, "none was set");
    let tag = client.request("PUT", &path, &[("If-Match", &tag), JSON, WORD], b"1").tag();
    assert_eq!(client.request("GET", &path, &[OTHER], b"").status, 403);
    assert_eq!(client.request("PUT", &path, &[("If-Match", &tag), BYTES], b"x").status, 403);
    client.request("PUT", &path, &[("If-Match", &tag), BYTES, WORD], b"x");
    assert_eq!(client.request("GET", &path, &[], b"").status, 200, "encrypted again, it needs none");
}

#[test]
fn tries_are_counted_and_given_back() {
    let server = Server::new();
    let mut client = server.client();
    let path = save(1);
    client.request("PUT", &path, &[NEW, JSON, WORD], b"1");
    let tries = limits().save.word_tries_max;
    let left = |a: &crate::client::Answer| a.json()["attempts_left"].as_u64().unwrap();
    for bad in ["abc", "ABCD", "abc1", "abcde", ""] {
        assert_eq!(client.request("GET", &path, &[("Save-Word", bad)], b"").problem(), "bad-word", "{bad:?}");
    }
    assert_eq!(left(&client.request("GET", &path, &[], b"")), u64::from(tries), "none of these cost a try");
    assert_eq!(left(&client.request("GET", &path, &[OTHER], b"")), u64::from(tries) - 1);
    assert_eq!(client.request("GET", &path, &[WORD], b"").status, 200);
    // Behind the right word the tries come back, in the order of the writer's queue.
    client.request("PUT", &save(2), &[NEW, JSON], b"1");
    assert_eq!(left(&client.request("GET", &path, &[], b"")), u64::from(tries));
}

#[test]
fn ten_thousand_guesses_are_worth_a_few() {
    let server = Server::new();
    let mut client = server.client();
    let path = save(1);
    client.request("PUT", &path, &[NEW, JSON, WORD], b"1");
    let tries = u64::from(limits().save.word_tries_max);
    let (mut wrong, mut waiting) = (0, 0);
    let started = std::time::Instant::now();
    for guess in 0..10_000_u32 {
        let letters: String = (0..4).map(|i| char::from(b'a' + (guess / 26_u32.pow(i) % 26) as u8)).collect();
        let letters = if guess == 5_000 { "moth".to_owned() } else { letters };
        let answer = client.request("GET", &path, &[("Save-Word", &letters)], b"");
        match answer.problem().as_str() {
            "wrong-word" => wrong += 1,
            "word-wait" => {
                assert_eq!(
                    answer.header("retry-after"),
                    Some(answer.json()["wait_seconds"].to_string().as_str())
                );
                waiting += 1;
            }
            other => panic!("{letters}: {other}"),
        }
    }
    // A wait may have ended while they were sent: each is twice as long as the last.
    let seconds = started.elapsed().as_secs() / u64::from(limits().save.word_wait_seconds_min) + 1;
    let most = tries + 1 + u64::from(seconds.ilog2()) + 1;
    assert!(
        wrong >= tries && wrong <= most,
        "{wrong} of at most {most} guesses were looked at, {waiting} not"
    );
}

#[test]
fn guesses_at_once_are_no_cheaper() {
    let server = Server::new();
    let path = save(1);
    server.client().request("PUT", &path, &[NEW, JSON, WORD], b"1");
    let looked_at: u32 = std::thread::scope(|scope| {
        let guess = |i: u8| {
            let (mut client, path) = (server.client(), &path);
            let word = format!("aaa{}", char::from(b'a' + i));
            scope.spawn(move || {
                u32::from(client.request("GET", path, &[("Save-Word", &word)], b"").problem() == "wrong-word")
            })
        };
        let guesses: Vec<_> = (0..26).map(guess).collect();
        guesses.into_iter().map(|g| g.join().unwrap()).sum()
    });
    assert!(looked_at <= limits().save.word_tries_max + 1, "{looked_at}");
}

#[test]
fn the_count_outlives_the_server() {
    let mut server = Server::new();
    let path = save(1);
    server.client().request("PUT", &path, &[NEW, JSON, WORD], b"1");
    let mut waits = Vec::new();
    for _ in 0..limits().save.word_tries_max + 2 {
        let answer = server.client().request("GET", &path, &[OTHER], b"");
        waits.push(answer.json()["wait_seconds"].as_u64().unwrap());
        server = server.restarted();
    }
    let first = u64::from(limits().save.word_wait_seconds_min);
    assert_eq!(waits[waits.len() - 4..], [0, first, 2 * first, 4 * first]);
    assert_eq!(server.client().request("GET", &path, &[WORD], b"").status, 200, "the save is not harmed");
}

//! A disk that is really full: the saves lie on a small one of their own, which the tests fill.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::client::{BYTES, Client, NEW, save};
use crate::program::{Program, command, installation};

/// What a shell in a mount namespace of its own does before it becomes the program.
const SMALL_DISK: &str = r#"
mkdir -p "$SAVES" && mount -t tmpfs -o size=3m tiny "$SAVES" && dd if=/dev/zero of="$SAVES/filler" bs=1M count=1 2>/dev/null &&
exec "$@"
"#;

/// `api serve`, whose saves are on a disk of 3 MB, one of them taken.
fn on_a_small_disk() -> Program {
    let folder = installation();
    let serve = command(folder.path(), &["serve"]);
    let root = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap()) == 0;
    let mut small = Command::new("unshare");
    small
        .args([if root { "-m" } else { "-rm" }, "--propagation", "private", "bash", "-c", SMALL_DISK, "api"])
        .arg(serve.get_program())
        .args(serve.get_args())
        .env("SAVES", folder.path().join("data/saves"));
    Program::run(small, folder)
}

/// A path as the program sees it.
fn seen_by(program: &Program, path: &Path) -> PathBuf {
    let inside = path.strip_prefix("/").unwrap();
    Path::new("/proc").join(program.id().to_string()).join("root").join(inside)
}

#[test]
fn a_full_disk_refuses_a_save_and_leaves_the_one_before() {
    let program = on_a_small_disk();
    let mut client: Client = program.client().unwrap();
    let old = vec![b'o'; 30_000];
    let tag = client.request("PUT", &save(0), &[NEW, BYTES], &old).tag();
    let new = vec![b'n'; 40_000];
    let refused = (1..1_000)
        .map(|n| client.request("PUT", &save(n), &[NEW, BYTES], &new))
        .find(|answer| answer.status != 201)
        .unwrap();
    assert_eq!((refused.status, refused.problem().as_str()), (507, "storage-full"));
    for round in 0..20 {
        let refused = client.request("PUT", &save(0), &[("If-Match", &tag), BYTES], &new);
        assert_eq!((refused.status, refused.problem().as_str()), (507, "storage-full"), "{round}");
        let kept = client.request("GET", &save(0), &[], b"");
        assert_eq!((kept.status, kept.tag(), kept.body == old), (200, tag.clone(), true), "{round}");
    }
    // Room is made, and nobody starts it anew.
    std::fs::remove_file(seen_by(&program, &program.data("saves/filler"))).unwrap();
    let saved = client.request("PUT", &save(0), &[("If-Match", &tag), BYTES], &new);
    assert_eq!(saved.status, 204, "{saved:?}");
    let kept = client.request("GET", &save(0), &[], b"");
    assert_eq!((kept.status, kept.tag(), kept.body == new), (200, saved.tag(), true));
}

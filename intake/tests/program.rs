//! The program: exit codes, and the same answer as the library that the server calls.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

use intake::python::bandit::Bandit;
use intake::submission::Submission;

fn run(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_intake")).args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

fn write(folder: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
        fs::write(folder.join(name), text).unwrap();
    }
}

#[test]
fn exit_codes_are_those_of_the_help() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    write(
        folder.path(),
        &[
            ("good/index.html", "<p>hello"),
            ("good/work.json", "{\"id\": \"hello\"}"),
            ("bad/index.html", "<script>eval(1)</script>"),
            ("bad/work.json", "{\"id\": \"bad\"}"),
            ("empty/readme.txt", "nothing"),
            ("noted.html", "<script>debugger</script>"),
        ],
    );
    assert_eq!(run(&["check", &path("good")]).0, 0);
    let (code, words, _) = run(&["check", &path("bad")]);
    assert_eq!(code, 1);
    assert!(
        words.contains("index.html:1:9: reject [eval-call]: eval is used\n    | eval\n    why: "),
        "{words}"
    );
    assert_eq!(run(&["check", &path("noted.html")]).0, 0);
    assert_eq!(run(&["check", &path("empty")]).0, 1);
    let (code, _, error) = run(&["check", &path("absent")]);
    assert_eq!(code, 3);
    assert!(error.contains("absent") && error.contains("No such file"), "{error}");
    for wrong in [&["check"][..], &[], &["frobnicate", "x"], &["check", "a", "b"], &["check", "--loud", "a"]]
    {
        assert_eq!(run(wrong).0, 2, "{wrong:?}");
    }
    let (code, help, _) = run(&["--help"]);
    assert!(code == 0 && help.contains("exit codes"));
}

#[test]
fn the_program_and_the_library_give_the_same_json() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = support::described("game/index.html\ngame/work.json\ngame/notes.txt");
    let path = folder.path().join("work.zip");
    fs::write(&path, &bytes).unwrap();
    let name = path.display().to_string();
    let (code, printed, _) = run(&["check", "--json", &name]);
    assert_eq!(code, 0, "{printed}");
    let mut report =
        serde_json::to_value(Submission::from_zip("work.zip", &bytes).check(&Bandit::default())).unwrap();
    report["submission"] = name.into();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&printed).unwrap(), report);
    assert_eq!(report["verdict"], "accepted");
    assert_eq!(report["findings"][0]["rule"], "zip-folder");
}

#[test]
fn an_explanation_makes_a_note_of_what_may_be_explained() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().display().to_string();
    let page = "<script>try { localStorage.a } catch {}</script>";
    write(folder.path(), &[("index.html", page), ("work.json", "{\"id\": \"a\"}")]);
    assert_eq!(run(&["check", &name]).0, 1);
    let explained = "{\"id\": \"a\", \"explain\": {\"storage-local\": \"read once, inside try\"}}";
    write(folder.path(), &[("work.json", explained)]);
    let (code, words, _) = run(&["check", &name]);
    assert!(code == 0 && words.contains("explained: read once, inside try"), "{words}");
    let final_one = "{\"id\": \"a\", \"explain\": {\"eval-call\": \"for fun\"}}";
    write(folder.path(), &[("index.html", "<script>eval(1)</script>"), ("work.json", final_one)]);
    let (code, words, _) = run(&["check", &name]);
    assert!(code == 1 && words.contains("[eval-call]") && words.contains("[sidecar-explain]"), "{words}");
}

#[test]
fn a_jam_entry_has_the_smaller_cap() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().display().to_string();
    let page = |length: usize| format!("<p>{}", "a".repeat(length - 3));
    for (tinyjam, length, code) in [(true, 65_536, 0), (true, 65_537, 1), (false, 65_537, 0)] {
        let sidecar = format!("{{\"id\": \"a\", \"tinyjam\": {tinyjam}}}");
        write(folder.path(), &[("index.html", &page(length)), ("work.json", &sidecar)]);
        assert_eq!(run(&["check", &name]).0, code, "{tinyjam} {length}");
    }
}

#[test]
fn every_wrong_value_of_a_sidecar_has_its_pointer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("work.json");
    fs::write(&path, "{\n \"id\": \"A b\",\n \"colour\": 1,\n \"tags\": [\"ok\", \"No\"],\n \"capabilities\": {\"net\": true}\n}").unwrap();
    let (code, words, _) = run(&["check", &path.display().to_string()]);
    assert_eq!(code, 1);
    for expected in [
        "work.json:2:8",
        "/id:",
        "work.json:3:12",
        "/colour:",
        "work.json:4:17",
        "/tags/1:",
        "work.json:5:26",
        "/capabilities/net:",
    ] {
        assert!(words.contains(expected), "{expected} is not in\n{words}");
    }
}

#[test]
fn a_folder_without_a_sidecar_and_texts_that_are_too_long() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().display().to_string();
    write(folder.path(), &[("index.html", "<p>hello")]);
    assert!(run(&["check", &name]).1.contains("[sidecar-missing]"));
    let max = policy::limits().work.title_chars_max;
    for (length, code) in [(max, 0), (max + 1, 1)] {
        let sidecar = format!("{{\"id\": \"a\", \"title\": \"{}\"}}", "é".repeat(length));
        write(folder.path(), &[("work.json", &sidecar)]);
        let (found, words, _) = run(&["check", &name]);
        assert_eq!(found, code, "{words}");
        assert_eq!(words.contains("[sidecar-length]"), code == 1, "{words}");
    }
}

/// Games in the shapes that tiny games have: golfed, bundled, without any tags, full of data.
#[test]
fn games_in_real_shapes_pass() {
    let games = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/games");
    let mut count = 0;
    for game in fs::read_dir(games).unwrap().map(|e| e.unwrap().path()) {
        let report = Submission::open(&game).unwrap().check(&Bandit::at("/nowhere/bandit"));
        let bad: Vec<_> =
            report.findings.iter().filter(|f| f.severity > intake::finding::Severity::Note).collect();
        assert!(bad.is_empty(), "{}: {bad:#?}", game.display());
        count += 1;
    }
    assert!(count >= 4, "{count}");
}

#[test]
fn rules_are_listed_and_shown() {
    let (code, list, _) = run(&["rules"]);
    assert!(code == 0 && list.contains("Network egress\n") && list.contains("net-fetch"));
    let (code, one, _) = run(&["rules", "packed"]);
    assert!(code == 0 && one.contains("Submit the source from before packing"));
    assert_eq!(run(&["rules", "no-such-rule"]).0, 3);
    let (_, json, _) = run(&["rules", "--json"]);
    let table: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
    assert_eq!(table.len(), intake::rules::all().len());
}

#[test]
fn packing_makes_a_work_that_passes_and_packing_again_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().display().to_string();
    write(
        folder.path(),
        &[
            (
                "index.html",
                "<!doctype html>\n<link rel=stylesheet href=css/a.css>\n<body background=hero.png>\n<img src='hero.png' srcset=\"hero.png 1x, hero.png 2x\">\n<script src=late.js defer></script>\n<script src=game.js></script>\n<p style='background: url(hero.png)'>é</p>\n</body>\n",
            ),
            ("css/a.css", "@import 'b.css';\np { background: url(../hero.png) }\n"),
            ("css/b.css", "q { background: url('../hero.png') }\n"),
            ("game.js", "const i = new Image(); i.src = 'hero.png'; localStorage.best = '</script>';\n"),
            ("late.js", "document.title = 'late';\n"),
            ("hero.png", "\u{89}PNG"),
            ("work.json", "{\"id\": \"a\"}"),
        ],
    );
    assert_eq!(run(&["check", &name]).0, 1);
    let (code, said, error) = run(&["pack", &name]);
    assert_eq!(code, 0, "{said}{error}");
    for expected in
        ["the script game.js", "the style sheet css/a.css", "hero.png", "tf.js", "copied work.json"]
    {
        assert!(said.contains(expected), "{expected} is not in\n{said}");
    }
    let packed = folder.path().join("packed");
    let (code, words, _) = run(&["check", &packed.display().to_string()]);
    assert_eq!(code, 0, "{words}");
    let html = fs::read_to_string(packed.join("index.html")).unwrap();
    assert!(html.find("data-tf").unwrap() < html.find("new Image").unwrap(), "the shim comes first");
    assert!(
        html.find("document.title").unwrap() > html.find("</p>").unwrap(),
        "a deferred script comes last"
    );
    assert!(html.contains("<p style='background: url(&quot;data:image/png;base64,"));
    let (code, said, _) = run(&["pack", &packed.display().to_string(), "-o", &packed.display().to_string()]);
    assert!(code == 0 && said.contains("nothing to pack"), "{said}");
    assert_eq!(fs::read_to_string(packed.join("index.html")).unwrap(), html);
}

#[test]
fn packing_takes_no_file_from_outside_and_says_what_it_left() {
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("work");
    write(
        &folder,
        &[
            (
                "index.html",
                "<img src=../secret.png><img src=/etc/hostname.png><img src=link.png><script src=gone.js></script>",
            ),
            ("../secret.png", "secret"),
        ],
    );
    #[cfg(unix)]
    std::os::unix::fs::symlink(outer.path().join("secret.png"), folder.join("link.png")).unwrap();
    let (code, said, _) = run(&["pack", &folder.display().to_string()]);
    assert_eq!(code, 1);
    assert!(said.contains("left: gone.js is not there") && said.contains("left: link.png"), "{said}");
    assert!(!fs::read_to_string(folder.join("packed/index.html")).unwrap().contains("base64"));
}

/// The works that come with the platform are what creators imitate.
#[test]
fn every_sample_work_passes() {
    let works = concat!(env!("CARGO_MANIFEST_DIR"), "/../content/works");
    let mut checked = 0;
    for creator in fs::read_dir(works).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_dir()) {
        for work in fs::read_dir(creator)
            .unwrap()
            .map(|e| e.unwrap().path())
            .filter(|p| p.join("work.json").is_file())
        {
            let report = Submission::open(&work).unwrap().check(&Bandit::at("/nowhere/bandit"));
            let bad: Vec<String> = report
                .findings
                .iter()
                .filter(|f| f.severity > intake::finding::Severity::Note)
                .map(ToString::to_string)
                .collect();
            assert!(bad.is_empty(), "{}: {}", work.display(), bad.join("\n"));
            checked += 1;
        }
    }
    assert!(checked >= 10, "{checked} works");
}

#[test]
fn storage_behind_the_shim_may_be_saved_and_need_not() {
    let folder = tempfile::tempdir().unwrap();
    let html = |script: &str| format!("{}<script>{script}</script>", intake::tf::element());
    let (stores, idle) = (html("localStorage.best = 3"), html("console.log(3)"));
    let declared = "{\"id\": \"best\", \"capabilities\": {\"save_api\": true}}";
    for (name, page, sidecar, code) in [
        ("saved", &stores, declared, 0),
        ("forgotten", &stores, "{\"id\": \"best\"}", 0),
        ("for-nothing", &idle, declared, 1),
    ] {
        let path = folder.path().join(name);
        write(&path, &[("index.html", page), ("work.json", sidecar)]);
        let (found, said, _) = run(&["check", &path.display().to_string()]);
        assert_eq!(found, code, "{name}: {said}");
    }
}

//! The sidecar, `work.json`.

rules! {
    ABSENT = "sidecar-missing" Sidecar Reject {
        title: "No sidecar",
        why: "The sidecar names the work and says what it needs; without it nothing can be granted.",
        fix: "Add a file work.json with at least { \"id\": \"your-work\" }.",
        fails: Words "a folder or a zip with a page and no work.json",
        passes: Sidecar "{ \"id\": \"unravel\" }",
    }
    JSON = "sidecar-json" Sidecar Reject {
        title: "A sidecar that is no JSON",
        why: "The sidecar is read by programs, so its form must be exact.",
        fix: "Mend the JSON at this place; usually a comma or a quote is missing, a comma is left before a bracket, or there is a comment, which JSON does not have.",
        fails: Sidecar "{ \"id\": \"unravel\", }",
        passes: Sidecar "{ \"id\": \"unravel\", \"capabilities\": { \"save_api\": true, \"pointer_lock\": false, \"fullscreen\": false, \"audio\": true }, \"explain\": { \"capability-unused\": \"an example without its page\" } }",
    }
    VALUE = "sidecar-value" Sidecar Reject {
        title: "A key or a value that the sidecar does not have",
        why: "The page around the work is made from these keys; one that is misspelt, or a value of another kind, would silently do nothing.",
        fix: "Correct the key or the value at this place as the finding says, or remove the line; every key but id may be left out. A pointer such as /view/width means the key width inside view.",
        fails: Sidecar "{ \"id\": \"unravel\", \"capabilities\": { \"network\": true } }",
        passes: Sidecar "{ \"id\": \"unravel\", \"tags\": [\"puzzle\"], \"view\": { \"width\": 640, \"height\": 480 } }",
    }
    LENGTH = "sidecar-length" Sidecar Reject {
        title: "A text of the sidecar that is too long",
        why: "Titles and summaries stand on cards of a fixed size, and descriptions are served to everyone.",
        fix: "Shorten the text at this place.",
        fails: Words "a title of more characters than the limit in policy",
        passes: Sidecar "{ \"id\": \"unravel\", \"title\": \"Unravel\", \"summary\": \"Pull a thread.\" }",
    }
    COVER = "sidecar-cover" Sidecar Reject {
        title: "A cover that is missing, too large or no picture",
        why: "Covers are shown by the site itself, so only PNG, JPEG, WebP and GIF of a bounded size are taken.",
        fix: "Put a PNG, JPEG, WebP or GIF under this name beside work.json, or remove the cover from it.",
        fails: Sidecar "{ \"id\": \"unravel\", \"cover\": { \"file\": \"cover.png\", \"alt\": \"a thread\" } }",
        passes: Sidecar "{ \"id\": \"unravel\" }",
    }
    EXPLAIN = "sidecar-explain" Sidecar Reject {
        title: "An explanation for a rule that cannot be explained, or that does not exist",
        why: "Network, evaluation, the page around the work and navigation are refused whatever the reason.",
        fix: "Remove the explanation, or correct the id of the rule; `intake rules` lists them.",
        fails: Sidecar "{ \"id\": \"unravel\", \"explain\": { \"net-fetch\": \"scores\" } }",
        passes: Sidecar "{ \"id\": \"unravel\", \"explain\": { \"storage-local\": \"read once, inside try\" } }",
    }
    BACKEND = "sidecar-backend" Sidecar Reject {
        title: "A Python function that is declared and absent, or present and not declared",
        why: "The function is called under the name that the sidecar gives, and nothing else runs.",
        fix: "Name the file under capabilities.python_backend and put it beside the sidecar.",
        fails: Sidecar "{ \"id\": \"text-adventure\", \"capabilities\": { \"python_backend\": \"text-adventure.py\" } }",
        passes: Sidecar "{ \"id\": \"text-adventure\" }",
    }
}

//! The smoke run.

rules! {
    ERROR = "play-error" Play Explainable {
        title: "An error that nobody caught, in the first seconds",
        why: "What fails in a fresh browser under the real headers fails for every player.",
        fix: "Mend the error at this place; `intake play` shows it again.",
        fails: Words "a script that throws while the page loads",
        passes: Words "a page that plays",
    }
    BLANK = "play-blank" Play Explainable {
        title: "A blank first screen",
        why: "A player who sees one colour and nothing else leaves.",
        fix: "Draw something before the first click, even if it is only a title.",
        fails: Words "a page that shows one colour after two seconds",
        passes: Words "a page with a line of text",
    }
    REFUSED = "play-refused" Play Note {
        title: "Something that the browser refused",
        why: "The headers that every work is served with forbid it; a moderator sees whether the work minds.",
        fix: "Nothing to mend if the work plays on; otherwise remove what is refused.",
        fails: Words "a request, or code that the content policy does not run",
        passes: Words "a page that asks for nothing",
    }
}

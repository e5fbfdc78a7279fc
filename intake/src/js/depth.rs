//! How much stack a script can make the parser use, before the parser sees it.
//!
//! oxc descends once for each open bracket and operator, and a process that runs out of stack dies. So the cost of the
//! most nested place is bounded first. Most scripts pass by the plain sum of all their brackets and operators; a large
//! one is tokenized. Whether a `/` divides or opens a regular expression cannot always be told without parsing: where
//! it cannot, both readings are tried, and a large script with too many such places is not accepted.
//!
//! The costs are upper bounds measured with oxc 0.146 (1,890 bytes a bracket, 860 an arrow, 610 an assignment, 430 an
//! `else`, 70 a step of a chain); the test at the end parses each shape at its bound.

const BRACKET: usize = 2_304;
const OPERATOR: usize = 1_024;
const WORD: usize = 640;
const STEP: usize = 256;

/// Places where both readings of `/` are tried, at most.
const GUESSES_MAX: u32 = 6;

/// Whether the script can be parsed within `stack_bytes`.
pub(super) fn fits(script: &str, stack_bytes: usize) -> bool {
    // Half for the parser, since the passes behind it descend as well and the caller stands on the same stack.
    let budget = stack_bytes / 2;
    if total(script.as_bytes()) <= budget {
        return true;
    }
    let (cost, guesses) = nested(script.as_bytes(), 0);
    if guesses > GUESSES_MAX || cost > budget {
        return false;
    }
    (1..1_u32 << guesses).all(|choice| {
        let (cost, guesses) = nested(script.as_bytes(), choice);
        guesses <= GUESSES_MAX && cost <= budget
    })
}

/// What a byte costs if everything before it is still open.
fn cost(byte: u8) -> usize {
    match byte {
        b'(' | b'[' | b'{' | b'`' => BRACKET,
        b'=' | b'?' | b':' => OPERATOR,
        b'.' | b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^' | b'<' | b'>' | b'!' | b'~' | b'@' => {
            STEP
        }
        _ => 0,
    }
}

fn total(bytes: &[u8]) -> usize {
    let mut previous = b' ';
    let mut sum = 0_usize;
    for byte in bytes {
        let starts_word = is_word(*byte) && !is_word(previous);
        sum = sum.saturating_add(cost(*byte) + if starts_word { WORD } else { 0 });
        previous = *byte;
    }
    sum
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'\\') || byte >= 0x80
}

/// An open bracket: what was spent before it, and what to know when it closes.
struct Level {
    spent: usize,
    operators: usize,
    opener: u8,
    /// For `(`: whether it belongs to `if`, `for`, `while` or `with`, behind which a `/` opens a regular expression.
    is_head: bool,
}

/// What the last token says about a `/` behind it.
#[derive(Clone, Copy, PartialEq)]
enum Before {
    Value,
    Operator,
    Either,
}

struct Lexer<'s> {
    bytes: &'s [u8],
    at: usize,
    levels: Vec<Level>,
    spent: usize,
    operators: usize,
    most: usize,
    before: Before,
    word_before: &'s [u8],
    guesses: u32,
    choice: u32,
}

/// The most that is open at once, and how many `/` could be read both ways.
fn nested(bytes: &[u8], choice: u32) -> (usize, u32) {
    let mut lexer = Lexer {
        bytes,
        at: 0,
        levels: Vec::new(),
        spent: 0,
        operators: 0,
        most: 0,
        before: Before::Operator,
        word_before: b"",
        guesses: 0,
        choice,
    };
    while let Some(byte) = lexer.peek(0) {
        lexer.token(byte);
        lexer.most = lexer.most.max(lexer.spent + lexer.operators);
        if lexer.guesses > GUESSES_MAX {
            break;
        }
    }
    (lexer.most, lexer.guesses)
}

impl<'s> Lexer<'s> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn token(&mut self, byte: u8) {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
            b'"' | b'\'' => self.string(byte),
            b'`' => self.template(),
            b'/' => self.slash(),
            b'(' | b'[' | b'{' => self.open(byte),
            b')' | b']' | b'}' => self.close(byte),
            b';' | b',' => {
                self.operators = 0;
                self.plain(Before::Operator);
            }
            b'+' | b'-' if self.peek(1) == Some(byte) => {
                self.operators += STEP;
                self.at += 1;
                let before = if self.before == Before::Operator { Before::Operator } else { Before::Either };
                self.plain(before);
            }
            byte if is_word(byte) => self.word(),
            byte => {
                self.operators += cost(byte);
                self.plain(Before::Operator);
            }
        }
    }

    fn plain(&mut self, before: Before) {
        self.at += 1;
        self.before = before;
        self.word_before = b"";
    }

    fn word(&mut self) {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().position(|b| !is_word(*b)).unwrap_or(rest.len());
        let word = &rest[..length];
        let is_member = self.at > 0 && self.bytes.get(self.at - 1) == Some(&b'.');
        self.at += length;
        self.word_before = if is_member { b"" } else { word };
        self.before = match word {
            _ if is_member => Before::Value,
            b"return" | b"typeof" | b"case" | b"do" | b"else" | b"in" | b"instanceof" | b"new" | b"void"
            | b"delete" | b"throw" | b"extends" => Before::Operator,
            b"yield" | b"await" | b"of" | b"async" | b"let" | b"static" | b"get" | b"set" => Before::Either,
            _ => Before::Value,
        };
        if !is_member && self.before != Before::Value || matches!(word, b"if" | b"for" | b"while" | b"with") {
            self.spent += WORD;
        }
    }

    fn open(&mut self, opener: u8) {
        let is_head =
            opener == b'(' && matches!(self.word_before, b"if" | b"for" | b"while" | b"with" | b"await");
        self.levels.push(Level { spent: self.spent, operators: self.operators, opener, is_head });
        self.spent += self.operators + BRACKET;
        self.operators = 0;
        self.plain(Before::Operator);
    }

    fn close(&mut self, closer: u8) {
        let Some(level) = self.levels.pop() else { return self.plain(Before::Either) };
        self.spent = level.spent;
        self.operators = level.operators + STEP;
        if level.opener == b'`' {
            return self.template_rest();
        }
        self.plain(match closer {
            b')' if level.is_head => Before::Operator,
            b'}' => Before::Either,
            _ => Before::Value,
        });
    }

    fn string(&mut self, quote: u8) {
        self.at += 1;
        while let Some(byte) = self.peek(0) {
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                b'\n' => break,
                byte if byte == quote => break,
                _ => {}
            }
        }
        self.before = Before::Value;
        self.word_before = b"";
    }

    fn template(&mut self) {
        self.operators += STEP;
        self.template_rest();
    }

    /// From behind a backtick, or behind the `}` of a substitution, to the next substitution or the end.
    fn template_rest(&mut self) {
        self.at += 1;
        while let Some(byte) = self.peek(0) {
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                b'`' => break,
                b'$' if self.peek(0) == Some(b'{') => {
                    self.levels.push(Level {
                        spent: self.spent,
                        operators: self.operators,
                        opener: b'`',
                        is_head: false,
                    });
                    self.spent += self.operators + BRACKET;
                    self.operators = 0;
                    return self.plain(Before::Operator);
                }
                _ => {}
            }
        }
        self.before = Before::Value;
        self.word_before = b"";
    }

    fn slash(&mut self) {
        match self.peek(1) {
            Some(b'/') => return self.skip_to(b"\n"),
            Some(b'*') => {
                self.at += 2;
                return self.skip_to(b"*/");
            }
            _ => {}
        }
        let end = self.regex_end();
        let is_regex = match (self.before, end) {
            (_, None) | (Before::Value, _) => false,
            (Before::Operator, _) => true,
            (Before::Either, _) => {
                let chosen = self.choice >> self.guesses.min(31) & 1 == 1;
                self.guesses += 1;
                chosen
            }
        };
        match end {
            Some(end) if is_regex => {
                self.at = end;
                self.before = Before::Value;
                self.word_before = b"";
            }
            _ => {
                self.operators += STEP;
                self.plain(Before::Operator);
            }
        }
    }

    fn skip_to(&mut self, mark: &[u8]) {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let found = rest.windows(mark.len()).position(|w| w == mark);
        self.at = found.map_or(self.bytes.len(), |i| self.at + i + mark.len());
    }

    /// The offset behind a regular expression that would begin here, if it ends on this line.
    fn regex_end(&self) -> Option<usize> {
        let mut at = self.at + 1;
        let mut in_class = false;
        loop {
            match self.bytes.get(at)? {
                b'\n' => return None,
                b'\\' => at += 1,
                b'[' => in_class = true,
                b']' => in_class = false,
                b'/' if !in_class => return Some(at + 1),
                _ => {}
            }
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_seen_through_strings_comments_and_regular_expressions() {
        let flat = |s: &str| nested(s.as_bytes(), 0).0;
        let one = flat("f(1)");
        for (script, levels) in [
            ("((((1))))", 4),
            ("a='((((('; f(1)", 1),
            ("/* ((((( */ f(1) // ((((", 1),
            ("x = /[/((((]/ ; f(1)", 1),
            ("if (a) /((((/.test(b)", 1),
            ("a = (b) / (((c))) / d", 3),
            ("`((((${ f(1) }((((`", 2),
            ("x.if(a) / (1) / 2", 1),
        ] {
            let cost = flat(script);
            assert!(cost >= levels * BRACKET && cost < levels * BRACKET + one, "{script}: {cost}");
        }
    }

    #[test]
    fn an_uncertain_slash_is_read_both_ways() {
        let hidden = format!("{{}} /\"/; {} \"", "(".repeat(100));
        assert_eq!(nested(hidden.as_bytes(), 0).1, 1);
        let most = (0..2).map(|c| nested(hidden.as_bytes(), c).0).max().unwrap();
        assert!(most >= 100 * BRACKET);
    }

    #[test]
    fn large_but_shallow_scripts_fit() {
        let stack = 8 << 20;
        assert!(fits(&"f(a[1],{b:2});\n".repeat(100_000), stack));
        assert!(!fits(&"(".repeat(100_000), stack));
        assert!(!fits(&"`${".repeat(100_000), stack));
        assert!(!fits(&"if(a);else ".repeat(100_000), stack));
    }
}

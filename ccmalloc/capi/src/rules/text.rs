//! The text of rules. `docs/use/ccmalloc.md` describes it for users.
//!
//! Nothing here allocates or reads anything but the text, which may be any bytes.

use core::fmt;

/// The first line of a file.
pub(crate) const HEADER: &str = "ccmalloc rules 1";
/// How many rules a file may have: the filter's bytes hold their numbers, from 1 on.
pub(crate) const RULES_MAX: usize = 255;
/// How many modules a file may name.
pub(crate) const MODULES_MAX: usize = 64;
/// How many words from the stack pointer on a rule may name.
const STACK_WORDS: usize = 32;
const WORD_BYTES: usize = size_of::<usize>();

/// How rules call the words of a snapshot: the registers, which are its first words; the stack
/// pointer, and the number of the word to which it points.
#[derive(Clone, Copy)]
pub(crate) struct Places {
    pub(crate) registers: &'static [&'static str],
    pub(crate) stack: &'static str,
    pub(crate) stack_word: usize,
}

/// A return address: an offset in a module of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    pub(crate) module: u8,
    pub(crate) offset: usize,
}

/// Where the hint of a rule comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Word `0` of the snapshot.
    Near(u8),
    /// The thread's latest object of the rule, which is number `0` of those that ask for it.
    Last(u8),
    /// None: a block with room.
    Open,
    /// None; huge pages.
    Huge,
}

/// The policies, by name. `None` as policy of a rule is the library's default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PolicyName {
    Closest,
    FirstFit,
    NewBlock,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) site: Site,
    pub(crate) bytes: usize,
    /// A second return address, and the word of the snapshot that must be it.
    pub(crate) caller: Option<(Site, u8)>,
    pub(crate) action: Action,
    pub(crate) policy: Option<PolicyName>,
    /// Where its text lies in the file.
    pub(crate) text: (u32, u32),
    /// The next rule for the same byte of the filter, as a number from 1 on, or 0.
    pub(crate) next: u8,
}

/// A module that a file names: parts of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Module<'t> {
    pub(crate) name: &'t [u8],
    pub(crate) build_id: &'t [u8],
}

/// What a file says.
pub(crate) struct Parsed<'t> {
    pub(crate) rules: [Option<Rule>; RULES_MAX],
    pub(crate) modules: [Option<Module<'t>>; MODULES_MAX],
    /// How many rules ask for the latest object.
    pub(crate) lasts: usize,
}

/// Why a file is none of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Error {
    /// From 1 on.
    pub(crate) line: usize,
    pub(crate) reason: &'static str,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

impl<'t> Parsed<'t> {
    pub(crate) const EMPTY: Self = Self {
        rules: [None; RULES_MAX],
        modules: [None; MODULES_MAX],
        lasts: 0,
    };

    /// Reads a file's text into a value that is empty. At most `lasts_max` rules may ask for the
    /// latest object.
    pub(crate) fn read(
        &mut self,
        text: &'t [u8],
        places: Places,
        lasts_max: usize,
    ) -> Result<(), Error> {
        let mut reader = Reader {
            parsed: self,
            places,
            lasts_max,
            rules: 0,
            modules: 0,
            module: None,
        };
        let mut at = 0;
        for (number, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let start = at;
            at += line.len() + 1;
            let line = line.split(|&byte| byte == b'#').next().unwrap_or_default();
            let read = match number {
                0 if line.trim_ascii() == HEADER.as_bytes() => Ok(()),
                0 => Err("not a file of rules: it does not begin with \"ccmalloc rules 1\""),
                _ => reader.line(line, start),
            };
            read.map_err(|reason| Error {
                line: number + 1,
                reason,
            })?;
        }
        Ok(())
    }
}

struct Reader<'p, 't> {
    parsed: &'p mut Parsed<'t>,
    places: Places,
    lasts_max: usize,
    rules: usize,
    modules: usize,
    /// The module whose rules follow.
    module: Option<u8>,
}

impl<'t> Reader<'_, 't> {
    /// Reads a line that starts at `start` of the text.
    fn line(&mut self, line: &'t [u8], start: usize) -> Result<(), &'static str> {
        let mut words = line
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty());
        match words.next() {
            None => Ok(()),
            Some(b"module") => {
                let (Some(name), Some(b"build-id"), Some(build_id)) =
                    (words.next(), words.next(), words.next())
                else {
                    return Err("expected: module NAME build-id ID");
                };
                // A path may follow.
                self.module = Some(self.module_of(Module { name, build_id })?);
                Ok(())
            }
            Some(site) => {
                let offset = offset(site).ok_or("expected: +OFFSET size BYTES ACTION")?;
                let module = self.module.ok_or("a rule before any module")?;
                let site = Site { module, offset };
                let end = start + line.trim_ascii_end().len();
                let text = (
                    u32::try_from(start).map_err(|_| "the file is too long")?,
                    u32::try_from(end).map_err(|_| "the file is too long")?,
                );
                self.rule(site, &mut words, text)
            }
        }
    }

    /// The number of a module, which may have been named before.
    fn module_of(&mut self, module: Module<'t>) -> Result<u8, &'static str> {
        let known = self.parsed.modules.iter();
        if let Some(number) = known.clone().position(|known| *known == Some(module)) {
            return Ok(small(number));
        }
        let place = self.parsed.modules.get_mut(self.modules);
        *place.ok_or("more than 64 modules")? = Some(module);
        self.modules += 1;
        Ok(small(self.modules - 1))
    }

    fn rule(
        &mut self,
        site: Site,
        words: &mut dyn Iterator<Item = &'t [u8]>,
        text: (u32, u32),
    ) -> Result<(), &'static str> {
        if words.next() != Some(b"size") {
            return Err("expected `size` behind the offset");
        }
        let bytes = (words.next().and_then(decimal)).ok_or("expected a number of bytes")?;
        let mut action = words.next();
        let mut caller = None;
        if action == Some(b"caller") {
            let site = words.next().and_then(|word| self.caller(word));
            let site = site.ok_or("expected MODULE+OFFSET, of a module named above")?;
            if words.next() != Some(b"at") {
                return Err("expected `at` and a place of the stack behind the caller");
            }
            let place = words.next().and_then(|word| self.stack_word(word));
            caller = Some((site, place.ok_or("not a place of the stack")?));
            action = words.next();
        }
        let action = match action {
            Some(b"open") => Action::Open,
            Some(b"huge") => Action::Huge,
            Some(b"near") => self.near(words.next().ok_or("expected a place behind `near`")?)?,
            _ => return Err("expected `near PLACE`, `open` or `huge`"),
        };
        let policy = match words.next() {
            None => None,
            Some(b"closest") => Some(PolicyName::Closest),
            Some(b"first-fit") => Some(PolicyName::FirstFit),
            Some(b"new-block") => Some(PolicyName::NewBlock),
            Some(_) => return Err("expected a policy: closest, first-fit or new-block"),
        };
        if words.next().is_some() {
            return Err("more than a rule");
        }
        let place = self.parsed.rules.get_mut(self.rules);
        *place.ok_or("more than 255 rules")? = Some(Rule {
            site,
            bytes,
            caller,
            action,
            policy,
            text,
            next: 0,
        });
        self.rules += 1;
        Ok(())
    }

    fn near(&mut self, place: &[u8]) -> Result<Action, &'static str> {
        if place == b"last" {
            if self.parsed.lasts == self.lasts_max {
                return Err("too many rules ask for the latest object");
            }
            self.parsed.lasts += 1;
            return Ok(Action::Last(small(self.parsed.lasts - 1)));
        }
        let registers = self.places.registers.iter();
        match registers.clone().position(|name| name.as_bytes() == place) {
            Some(number) => Ok(Action::Near(small(number))),
            None => self
                .stack_word(place)
                .map(Action::Near)
                .ok_or("no such place: neither a register that calls preserve nor on the stack"),
        }
    }

    /// The number of the word that a place of the stack names, as `rsp+24`.
    fn stack_word(&self, place: &[u8]) -> Option<u8> {
        let offset = place
            .strip_prefix(self.places.stack.as_bytes())?
            .strip_prefix(b"+")?;
        let offset = decimal(offset)?;
        let word = offset / WORD_BYTES;
        (offset.is_multiple_of(WORD_BYTES) && word <= STACK_WORDS)
            .then(|| small(self.places.stack_word + word))
    }

    /// `MODULE+OFFSET`, of a module that was named.
    fn caller(&self, word: &[u8]) -> Option<Site> {
        let plus = word.iter().rposition(|&byte| byte == b'+')?;
        let (name, rest) = word.split_at_checked(plus)?;
        let mut modules = self.parsed.modules.iter().flatten();
        Some(Site {
            module: modules.position(|module| module.name == name).map(small)?,
            offset: offset(rest)?,
        })
    }
}

/// A number of a list that has at most 256 items.
pub(crate) fn small(number: usize) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}

/// `+`, and hexadecimal digits.
fn offset(word: &[u8]) -> Option<usize> {
    number(word.strip_prefix(b"+")?, 16)
}

fn decimal(word: &[u8]) -> Option<usize> {
    number(word, 10)
}

fn number(digits: &[u8], radix: u32) -> Option<usize> {
    // `from_str_radix` takes a sign.
    let is_digits = !digits.is_empty() && digits.iter().all(u8::is_ascii_alphanumeric);
    let digits = core::str::from_utf8(digits).ok()?;
    is_digits.then(|| usize::from_str_radix(digits, radix).ok())?
}

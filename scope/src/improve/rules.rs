//! Files of placement rules, which `libccmalloc.so` writes and reads.
//!
//! Rules pass through as they are written. What is read of them here names them, orders them, and
//! tells which exclude each other.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// The first line of a file.
const HEADER: &str = "ccmalloc rules 1";
/// Larger files are refused, as by the library.
const MAX_BYTES: usize = 1 << 20;

/// A rule, and what the learner has seen of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proposal {
    /// The line of the module that the rule is of.
    pub(crate) module: Vec<u8>,
    /// The rule's line without its comment.
    pub(crate) rule: Vec<u8>,
    /// The line of the module that its second return address is in.
    pub(crate) caller: Option<Vec<u8>>,
    /// Rules of the objects beside which its own are to lie: without them it has no effect.
    pub(crate) parents: Vec<Proposal>,
    pub(crate) allocations: u64,
    pub(crate) alive_bytes: u64,
    /// The comment, of the process in which most bytes are alive.
    pub(crate) comment: String,
}

/// A return address: a module's name and an offset in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    pub(crate) module: String,
    pub(crate) offset: u64,
}

impl Proposal {
    pub(crate) fn rule(&self) -> String {
        String::from_utf8_lossy(&self.rule).into_owned()
    }

    /// All rules that belong to it.
    pub(crate) fn rules(&self) -> String {
        let rules = [self].into_iter().chain(&self.parents).map(Proposal::rule);
        rules.collect::<Vec<_>>().join(", with ")
    }

    /// The name and, if it has one, the path of its module.
    pub(crate) fn module(&self) -> (String, Option<String>) {
        let line = String::from_utf8_lossy(&self.module);
        let mut words = line.split_ascii_whitespace().skip(1);
        let name = words.next().unwrap_or_default().to_owned();
        // The build id and its word; a path may have blanks.
        let path = line
            .splitn(5, ' ')
            .nth(4)
            .map(|path| path.trim().to_owned());
        (name, path.filter(|path| !path.is_empty()))
    }

    /// Where it allocates: the caller that it names, or else its own return address.
    pub(crate) fn site(&self) -> Option<Site> {
        let rule = self.rule();
        let mut words = rule.split_ascii_whitespace();
        let own = words.next().unwrap_or_default();
        let caller = words.skip_while(|word| *word != "caller").nth(1);
        let (module, offset) = caller.unwrap_or(own).split_once('+')?;
        let module = match module {
            "" => self.module().0,
            name => name.to_owned(),
        };
        let offset = u64::from_str_radix(offset, 16).ok()?;
        Some(Site { module, offset })
    }

    /// The size that it is for.
    pub(crate) fn bytes(&self) -> Option<u64> {
        let rule = self.rule();
        let mut words = rule
            .split_ascii_whitespace()
            .skip_while(|word| *word != "size");
        words.nth(1)?.parse().ok()
    }

    /// Which object is the parent of a new one, if a learner has seen it: what the new one is
    /// placed beside.
    pub(crate) fn parent(&self) -> Option<String> {
        let mut parts = self.comment.split(", ");
        let holder = self.rule();
        let holder = holder.rsplit(' ').next()?;
        let linked = parts
            .clone()
            .find_map(|part| part.strip_prefix("linked "))?;
        let link = parts.find_map(|part| {
            let (new, old) = ("new object at +", "it at +");
            let into = part
                .strip_prefix(new)
                .and_then(|rest| rest.strip_suffix(" of it"));
            let from = part
                .strip_prefix(old)
                .and_then(|it| it.strip_suffix(" of the new object"));
            let into = into.map(|at| format!("whose byte {at} will point to the new one"));
            into.or_else(|| Some(format!("to which byte {} of the new one will point", from?)))
        })?;
        Some(format!(
            "the object {link}; {holder} has it at {linked} of the calls"
        ))
    }

    /// Why there is no rule, of a site that has none.
    pub(crate) fn refusal(&self) -> &str {
        self.comment.rsplit(": ").next().unwrap_or_default()
    }

    /// Whether it is for objects beside which those of `child` are to lie.
    fn is_parent_of(&self, child: &Proposal) -> bool {
        let of = self.comment.split_once("for the objects of ");
        let of = of.and_then(|(_, rest)| rest.split_ascii_whitespace().next());
        of.is_some_and(|of| child.rule().split_ascii_whitespace().next() == Some(of))
            || child.parents.iter().any(|parent| self.is_parent_of(parent))
    }

    /// Whether both are about the same allocations, so that only one can hold.
    pub(crate) fn excludes(&self, other: &Proposal) -> bool {
        let place = |it: &Proposal| {
            let rule = it.rule();
            let words = rule.split_ascii_whitespace();
            let start: Vec<String> = words.take(3).map(str::to_owned).collect();
            (it.module().0, start, it.site())
        };
        let all = |it: &Proposal| -> Vec<_> { it.parents.iter().chain([it]).map(place).collect() };
        let others = all(other);
        all(self).iter().any(|it| others.contains(it))
    }
}

/// What a learner's file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Learned {
    /// Allocations that the learner has seen; `None` if the file does not say.
    pub(crate) allocations: Option<u64>,
    pub(crate) proposals: Vec<Proposal>,
    /// Sites for which no rule is proposed, each with its comment.
    pub(crate) refused: Vec<Proposal>,
}

impl Learned {
    /// Reads a file, of a learner or written by hand.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is no file of rules.
    pub(crate) fn read(path: &Path) -> Result<Learned, String> {
        let shown = path.display();
        let mut bytes = Vec::new();
        // One byte more than is allowed tells that there are more.
        let read = File::open(path)
            .and_then(|file| file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes));
        read.map_err(|error| format!("cannot read {shown}: {error}"))?;
        Learned::parse(&bytes).map_err(|why| format!("{shown} is no file of rules: {why}"))
    }

    /// Reads the content of a file.
    ///
    /// # Errors
    ///
    /// It is no file of rules.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Learned, String> {
        if bytes.len() > MAX_BYTES {
            return Err("it is larger than 1 MiB".to_owned());
        }
        let mut lines = bytes.split(|&byte| byte == b'\n');
        let (first, _) = split_comment(lines.next().unwrap_or_default());
        if first != HEADER.as_bytes() {
            return Err(format!("it does not begin with \"{HEADER}\""));
        }
        let mut learned = Learned::default();
        let (mut module, mut modules) = (None, Vec::new());
        for (index, line) in lines.enumerate() {
            let (text, comment) = split_comment(line);
            let comment = String::from_utf8_lossy(comment).trim().to_owned();
            if text.is_empty() {
                if comment.starts_with("learned by") {
                    learned.allocations = number(&comment, |pair| {
                        (pair[1] == "allocations").then_some(pair[0])
                    });
                }
                if let (Some(module), Some((site, seen))) = (module, comment.split_once(": "))
                    && site.starts_with('+')
                {
                    let rule = site.as_bytes();
                    learned
                        .refused
                        .push(proposal(module, rule, seen.to_owned()));
                }
            } else if text.starts_with(b"module ") {
                module = Some(text);
                modules.push(text);
            } else if let Some(module) = module.filter(|_| text[0] == b'+') {
                let caller =
                    caller(text).and_then(|name| modules.iter().find(|it| is_of(it, name)));
                learned.proposals.push(Proposal {
                    caller: caller.map(|line| line.to_vec()),
                    ..proposal(module, text, comment)
                });
            } else {
                let line = index + 2;
                return Err(format!("line {line} is neither a module nor a rule of one"));
            }
        }
        Ok(learned)
    }

    /// Adds what another process has learned. The most bytes alive come first, and else what comes
    /// first in the files.
    pub(crate) fn merge(&mut self, other: Learned) {
        self.allocations = match (self.allocations, other.allocations) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        };
        for proposal in other.proposals {
            let same = |it: &&mut Proposal| {
                it.rule == proposal.rule && named(&it.module) == named(&proposal.module)
            };
            match self.proposals.iter_mut().find(same) {
                Some(known) => {
                    if proposal.alive_bytes > known.alive_bytes {
                        known.comment = proposal.comment;
                    }
                    known.allocations = known.allocations.saturating_add(proposal.allocations);
                    known.alive_bytes = known.alive_bytes.saturating_add(proposal.alive_bytes);
                }
                None => self.proposals.push(proposal),
            }
        }
        self.proposals
            .sort_by_key(|it| std::cmp::Reverse(it.alive_bytes));
        self.refused.extend(other.refused);
    }

    /// Puts rules for parents to those of their children, as one is of no use without the other.
    pub(crate) fn joined(mut self) -> Learned {
        let mut at = 0;
        while at < self.proposals.len() {
            let mut parent = self.proposals.remove(at);
            match self.proposals.iter_mut().find(|it| parent.is_parent_of(it)) {
                Some(child) => {
                    child.parents.append(&mut parent.parents);
                    child.parents.push(parent);
                }
                None => {
                    self.proposals.insert(at, parent);
                    at += 1;
                }
            }
        }
        self
    }
}

fn proposal(module: &[u8], rule: &[u8], comment: String) -> Proposal {
    Proposal {
        module: module.to_vec(),
        rule: rule.to_vec(),
        caller: None,
        parents: Vec::new(),
        allocations: after(&comment, "allocations"),
        alive_bytes: after(&comment, "alive"),
        comment,
    }
}

/// The name of the module that a rule's second return address is in.
fn caller(rule: &[u8]) -> Option<&[u8]> {
    let mut words = rule
        .split(u8::is_ascii_whitespace)
        .skip_while(|word| *word != b"caller");
    let plus = words
        .clone()
        .nth(1)?
        .iter()
        .rposition(|&byte| byte == b'+')?;
    Some(&words.nth(1)?[..plus])
}

/// Whether a line of a module has this name.
fn is_of(module: &[u8], name: &[u8]) -> bool {
    module.split(u8::is_ascii_whitespace).nth(1) == Some(name)
}

/// Name and build id of a module's line.
fn named(module: &[u8]) -> Vec<&[u8]> {
    module.split(|&byte| byte == b' ').take(4).collect()
}

/// A file of these rules, each below its comment.
pub(crate) fn write(head: &[String], rules: &[(&Proposal, String)]) -> Vec<u8> {
    let mut text = format!("{HEADER}\n").into_bytes();
    let comment = |text: &mut Vec<u8>, line: &str| {
        let mut safe = String::new();
        // A name from debug information must not begin a line.
        let written = write!(safe, "# {}", crate::views::text::escape(line));
        written.expect("a string takes text");
        text.extend([safe.as_bytes(), b"\n"].concat());
    };
    head.iter().for_each(|line| comment(&mut text, line));
    let mut module: &[u8] = b"";
    for (proposal, line) in rules {
        comment(&mut text, line);
        for rule in proposal.parents.iter().chain([*proposal]) {
            for of in rule.caller.iter().chain([&rule.module]) {
                if of != module {
                    module = of;
                    text.extend([module, b"\n"].concat());
                }
            }
            text.extend([&*rule.rule, b"\n"].concat());
        }
    }
    text
}

/// A line's text, and what follows `#`.
fn split_comment(line: &[u8]) -> (&[u8], &[u8]) {
    let at = line.iter().position(|&byte| byte == b'#');
    let (text, comment) = line.split_at(at.unwrap_or(line.len()));
    (
        text.trim_ascii(),
        comment.strip_prefix(b"#").unwrap_or_default(),
    )
}

/// The number that follows a word, or 0.
fn after(text: &str, word: &str) -> u64 {
    number(text, |pair| (pair[0] == word).then_some(pair[1])).unwrap_or(0)
}

/// The first number that `of` finds in two words that follow each other.
fn number<'t>(text: &'t str, of: impl Fn(&[&'t str]) -> Option<&'t str>) -> Option<u64> {
    let words: Vec<&str> = text.split([' ', ',']).filter(|it| !it.is_empty()).collect();
    words.windows(2).find_map(|pair| of(pair)?.parse().ok())
}

#[cfg(test)]
mod tests {
    use quickcheck::quickcheck;

    use super::*;

    const FILE: &str = "ccmalloc rules 1
# learned by ccmalloc; program /tmp/prog, 4012345 allocations, 1834 samples, 1.2 % of time
module prog build-id 3f9c07 /tmp/a prog
+b9990 size 16 near r14  # allocations 1000000, sampled 412, linked 98 %, alive 24000000 bytes
# +a2010 size 16: allocations 500, sampled 31, linked 3 %: no place is linked often enough
module libx.so build-id aa00
+a958c size 96 caller prog+41f2 at rsp+24 near rsp+224 # allocations 10, alive 30000000 bytes
";

    #[test]
    fn proposals_of_learners_are_read_and_merged() {
        let mut learned = Learned::parse(FILE.as_bytes()).unwrap();
        assert_eq!(learned.allocations, Some(4_012_345));
        let [first, second] = &learned.proposals[..] else {
            panic!("{learned:?}");
        };
        assert_eq!(first.rule(), "+b9990 size 16 near r14");
        let [refused] = &learned.refused[..] else {
            panic!("{learned:?}");
        };
        let why = "no place is linked often enough";
        assert_eq!(
            (&*refused.rule(), refused.refusal()),
            ("+a2010 size 16", why)
        );
        assert_eq!(
            (first.allocations, first.alive_bytes),
            (1_000_000, 24_000_000)
        );
        assert_eq!(
            first.module(),
            ("prog".to_owned(), Some("/tmp/a prog".to_owned()))
        );
        let site = |module: &str, offset| Site {
            module: module.to_owned(),
            offset,
        };
        assert_eq!(first.site(), Some(site("prog", 0xb9990)));
        assert_eq!(second.site(), Some(site("prog", 0x41f2)));
        assert_eq!(second.module().1, None);
        assert!(!first.excludes(second));
        let other = Proposal {
            rule: b"+b9990 size 16 near rbx".to_vec(),
            ..first.clone()
        };
        assert!(first.excludes(&other));
        learned.merge(Learned::parse(FILE.as_bytes()).unwrap());
        assert_eq!(learned.allocations, Some(8_024_690));
        let alive: Vec<u64> = learned.proposals.iter().map(|it| it.alive_bytes).collect();
        assert_eq!(alive, [60_000_000, 48_000_000]);
    }

    #[test]
    fn what_is_written_is_read() {
        let learned = Learned::parse(FILE.as_bytes()).unwrap();
        let rules: Vec<_> = { learned.proposals.iter() }
            .map(|it| (it, "gains\n+0 size 1 huge".to_owned()))
            .collect();
        let text = write(&["by ccscope".to_owned()], &rules);
        let again = Learned::parse(&text).unwrap();
        let of = |it: &Learned| -> Vec<_> {
            { it.proposals.iter() }
                .map(|it| (it.module.clone(), it.rule.clone()))
                .collect()
        };
        assert_eq!(of(&again), of(&learned));
        assert!(
            String::from_utf8(text)
                .unwrap()
                .contains("\n# gains\\n+0 size 1 huge\n")
        );
    }

    #[test]
    fn rules_of_parents_go_with_their_childrens() {
        let file = "ccmalloc rules 1
module lib build-id 2
module prog build-id 1
+30 size 16 open # alive 9 bytes, for the objects of +20
+10 size 16 near rbx # alive 8 bytes
+20 size 16 caller lib+5 at rsp+8 near rbp # alive 7 bytes, for the objects of +10
+40 size 16 open # alive 6 bytes, for the objects of +99
";
        let learned = Learned::parse(file.as_bytes()).unwrap().joined();
        let rules: Vec<_> = learned.proposals.iter().map(Proposal::rule).collect();
        assert_eq!(rules, ["+10 size 16 near rbx", "+40 size 16 open"]);
        let text = write(&[], &[(&learned.proposals[0], "both".to_owned())]);
        let text = String::from_utf8(text).unwrap();
        let rules: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let [lib, prog] = ["module lib build-id 2", "module prog build-id 1"];
        let last = "+10 size 16 near rbx";
        let parent = "+20 size 16 caller lib+5 at rsp+8 near rbp";
        assert_eq!(rules[0], HEADER);
        for rule in [lib, prog, "+30 size 16 open", parent, last] {
            assert!(rules.contains(&rule), "{text}");
        }
        assert!(text.find(lib) < text.find(parent));
        let again = Learned::parse(text.as_bytes()).unwrap();
        assert!(again.proposals[0].excludes(&learned.proposals[0]));
        assert!(!again.proposals[0].excludes(&learned.proposals[1]));
    }

    #[test]
    fn files_of_others_are_refused() {
        for (text, why) in [
            ("", "does not begin"),
            ("ccmalloc rules 2\n", "does not begin"),
            ("ccmalloc rules 1\n+a size 16 near rbx\n", "line 2"),
            (
                "ccmalloc rules 1\nmodule a build-id 1\nnonsense\n",
                "line 3",
            ),
        ] {
            let error = Learned::parse(text.as_bytes()).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        assert!(Learned::parse(&vec![b'#'; MAX_BYTES + 1]).is_err());
    }

    quickcheck! {
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>, at: usize, is_file: bool) -> bool {
            let mut text = if is_file { FILE.as_bytes().to_vec() } else { Vec::new() };
            let at = at % (text.len() + 1);
            text.splice(at..at, bytes);
            if let Ok(mut learned) = Learned::parse(&text) {
                for proposal in &learned.proposals {
                    drop((proposal.site(), proposal.module(), proposal.rule()));
                    assert!(proposal.excludes(proposal));
                }
                learned.merge(learned.clone());
            }
            true
        }
    }
}

//! Runs a script of functions, arrays, maps and strings: `rhai ROUNDS`.

const SCRIPT: &str = r##"
fn fib(n) { if n < 2 { n } else { fib(n - 1) + fib(n - 2) } }

fn primes(most) {
    let sieve = [];
    sieve.pad(most, true);
    let found = 0;
    for n in 2..most {
        if sieve[n] {
            found += 1;
            for other in range(n * 2, most, n) { sieve[other] = false; }
        }
    }
    found
}

fn words(count) {
    let counts = #{};
    for n in 0..count {
        let word = `word${n * 7919 % 101}`;
        counts[word] = if word in counts { counts[word] + 1 } else { 1 };
    }
    let sum = 0;
    for word in counts.keys() { sum += counts[word] * word.len(); }
    sum
}

let sum = 0;
for round in 0..rounds { sum += fib(12) + primes(600) + words(300); }
sum
"##;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rounds: i64 = std::env::args().nth(1).ok_or("rhai ROUNDS")?.parse()?;
    let mut scope = rhai::Scope::new();
    scope.push("rounds", rounds);
    println!(
        "{}",
        rhai::Engine::new().eval_with_scope::<i64>(&mut scope, SCRIPT)?
    );
    Ok(())
}

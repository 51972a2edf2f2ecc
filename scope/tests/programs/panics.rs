//! Panics while values are dropped, once or twice at a time.

struct Loud(Vec<u8>, bool);

impl Drop for Loud {
    fn drop(&mut self) {
        if self.1 {
            panic!("dropped {} bytes", self.0.len());
        }
    }
}

fn main() {
    let twice = std::env::args().nth(1).is_some_and(|how| how == "twice");
    let _first = Loud(vec![1; 4567], twice);
    let _second = Loud(vec![2; 4567], true);
}

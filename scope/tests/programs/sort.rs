//! Sorts an array of 2,000 numbers in place.

#[path = "common/mod.rs"]
mod common;

fn sort(array: &mut [u32]) {
    if array.len() < 2 {
        return;
    }
    let pivot = array[array.len() / 2];
    let (mut i, mut j) = (0, array.len() - 1);
    loop {
        while array[i] < pivot {
            i += 1;
        }
        while array[j] > pivot {
            j -= 1;
        }
        if i >= j {
            break;
        }
        array.swap(i, j);
        i += 1;
        j -= 1;
    }
    let (left, right) = array.split_at_mut(i);
    sort(left);
    sort(right);
}

fn main() {
    let mut random = common::Random::new();
    let mut array: Vec<u32> = (0..2000).map(|_| random.next() as u32).collect();
    sort(&mut array);
    let mut last = 0;
    for &value in &array {
        assert!(last <= value);
        last = value;
    }
    common::print_chunk(array.as_ptr(), array.len());
    common::end();
    array.leak();
}

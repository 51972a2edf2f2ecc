#[test]
fn show() {
    let mut run = crate::analyses::test_profile::profile();
    run.windows.push(crate::analyses::test_profile::window(5,0,vec![crate::analyses::test_profile::access(0,0,0);10]));
    run.windows.push(crate::analyses::test_profile::window(5,0,vec![crate::analyses::test_profile::access(0,3,0);10]));
    run.windows.push(crate::analyses::test_profile::window(5,0,vec![crate::analyses::test_profile::access(0,1,0);10]));
    for width in [80, 120] {
    let o = super::Options{width, ..Default::default()};
    use super::terminal::*;
    println!("{}", summary(&run, &o));
    println!("{}", sites(&run, &o));
    println!("{}", types(&run, &o));
    println!("{}", threads(&run, &o));
    println!("{}", edges(&run, &o));
    println!("{}", source(&run, &o, 0));
    }
}

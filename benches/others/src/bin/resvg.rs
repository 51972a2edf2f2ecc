//! Draws a picture with paths, gradients and a blur: `resvg SHAPES`.

use std::error::Error;
use std::fmt::Write;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

fn picture(shapes: u32) -> Result<String, std::fmt::Error> {
    let mut text = String::from(
        "<svg xmlns='http://www.w3.org/2000/svg' width='400' height='400'><defs>\
         <radialGradient id='g'><stop offset='0' stop-color='gold'/>\
         <stop offset='1' stop-color='navy'/></radialGradient>\
         <filter id='f'><feGaussianBlur stdDeviation='2'/></filter></defs>",
    );
    for shape in 0..shapes {
        let (x, y) = (shape * 37 % 360, shape * 53 % 360);
        match shape % 8 {
            0 => write!(
                text,
                "<circle cx='{x}' cy='{y}' r='20' fill='url(#g)' filter='url(#f)'/>"
            )?,
            1 => write!(
                text,
                "<g opacity='.5'><rect x='{x}' y='{y}' width='30' height='9'/></g>"
            )?,
            _ => write!(
                text,
                "<path d='M{x} {y}q9 40 40 9t-9 20z' fill='#{:03x}' stroke='red'/>",
                shape % 4096
            )?,
        }
    }
    Ok(text + "</svg>")
}

fn main() -> Result<(), Box<dyn Error>> {
    let shapes = std::env::args().nth(1).ok_or("resvg SHAPES")?.parse()?;
    let tree = Tree::from_str(&picture(shapes)?, &Options::default())?;
    let mut canvas = Pixmap::new(400, 400).ok_or("no canvas")?;
    resvg::render(&tree, Transform::identity(), &mut canvas.as_mut());
    let mut sum = 0_u64;
    canvas
        .data()
        .iter()
        .for_each(|byte| sum = sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
    println!("{sum}");
    Ok(())
}

//! The example of the documentation runs, and does what it says.

#[allow(dead_code)]
#[path = "../examples/keep_inside.rs"]
mod keep_inside;

#[test]
fn the_example_keeps_inside() -> Result<(), Box<dyn std::error::Error>> {
    keep_inside::main()
}

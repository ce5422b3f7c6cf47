"""What looks at graphs, plans and steps from outside, and shows them."""

"""The tools that one caller is offered, held against the policy at each call."""

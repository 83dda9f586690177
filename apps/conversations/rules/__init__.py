"""What a workspace says about all its conversations: how long they are kept, who names and checks them."""

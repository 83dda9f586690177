"""Other frameworks: LangChain tools both ways, and an agent with their habits over our loop. Imports nothing."""

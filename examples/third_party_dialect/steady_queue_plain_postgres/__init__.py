"""PostgreSQL for Steady Queue by portable building blocks, with one statement of its own."""

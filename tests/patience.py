"""How long tests wait for what must come: so long that only what never comes fails, whatever else the machine does.

What would be waited for wrongly never ends in these tests: that they end is what they show. Time bounds of the product
are its settings and tested as such; speed is measured in benchmarks/.
"""

from __future__ import annotations

PATIENCE_S = 480.0
"""Longer than the sweeper takes to notice a wake-up that died with its worker, twice (jobs.sweeper.LOST_WAKE_UP_S)."""

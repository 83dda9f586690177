"""Model calls at half price, through providers' batch APIs: lines, batches, and who carries them."""

"""Models of which every device holds a part: tables of embeddings spread over the devices."""

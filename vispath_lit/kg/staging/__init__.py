"""What importers share: streams and archives, resumable staging, and the way into a store or folder."""

"""Search: nestings, packing, realisation, bounds and the certificate."""

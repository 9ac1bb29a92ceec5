"""Messages of the contract to values of the domain and back; pure, both ways."""

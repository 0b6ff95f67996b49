"""The picker: which pool gets a session, and what is known of sessions, pools and Envoys."""

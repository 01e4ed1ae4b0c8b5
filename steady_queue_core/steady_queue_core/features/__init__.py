"""What a job can have beyond a plain one, a room for each feature.

``options`` of a room says what its options may be and how a job keeps them; ``declared`` lists the
options of all rooms, and ``at_work`` what they answer while jobs run. No room imports another one.
"""

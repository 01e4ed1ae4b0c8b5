"""What a job can have beyond a plain one, a room for each feature.

``options`` of a room says what its options may be and how a job keeps them; ``declared`` lists the
options of all rooms. No room imports another one.
"""

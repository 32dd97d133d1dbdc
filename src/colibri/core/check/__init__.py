"""The check of a log, by the procedure and with the codes of docs/formats.md §9 and §10.

    rows      records as the table holds them, their leaves, what a header may say      steps 2, 3
    payload   what all payloads are made of; deed_payloads those of deeds
    kinds     a typed struct for the payload of each kind: strict, canonical            step 7
    log       order, links, gaps, payloads, erasures; which steps are judged            steps 4 to 9
    sessions  openings, thoughts, seals                                                 step 10
    calls     enter, changes, exit; digests of the texts in a call's arguments          step 12
    tasks     the replay of tasks                                                       step 13
    deeds     what hosts reported, and how much of the work that shows                steps 10 to 13

Every record takes the same way: its row is proven, its payload read into a struct, and the rules
see the two. The structs are msgspec's, so none of this is loaded before somebody verifies.
"""

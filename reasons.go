package hcp

// ReasonMoved marks an answer that the caller's router repeats by itself: the
// actor lives elsewhere now. No client sees it while time is left.
const ReasonMoved = "moved"

#include "reliability/outage.h"

namespace cluster::reliability {

void Outage::note(Time now, Status error, bool known) {
  if (now - last_ > kErrorGapMax) {
    error_ = Status::ok;
    forgotten_ = false;
  }
  if (error_ == Status::ok) {
    since_ = now;
    contested_since_ = kNever;  // it is asked anew
  }
  error_ = error;
  last_ = now;
  tolerated_ = error != Status::refused ? kUnreachableTolerated
               : known                  ? kRefusedTolerated
                                        : kStartingTolerated;
}

bool Outage::contest(Time now) {
  if (contested()) return false;
  contested_since_ = now;
  return true;
}

void Outage::end() {
  error_ = Status::ok;
  forgotten_ = false;
  contested_since_ = kNever;
}

void Outage::on_answer(Time asked) {
  if (error_ == Status::ok || asked >= since_) end();
}

void Outage::disregard(Duration absence) {
  since_ += absence;
  last_ += absence;
  if (contested()) contested_since_ += absence;
}

void Outage::forget() {
  if (error_ == Status::ok || forgotten_) return;
  error_ = Status::ok;
  forgotten_ = true;
}

Status Outage::verdict(Time now) const {
  const bool ends = last_ > since_ && now - since_ >= tolerated_ && now - last_ <= kErrorGapMax;
  return ends ? error_ : Status::ok;
}

Time Outage::verdict_due() const {
  if (error_ == Status::ok || last_ <= since_) return kNever;
  const Time due = since_ + tolerated_;
  return due <= last_ + kErrorGapMax ? due : kNever;
}

}  // namespace cluster::reliability

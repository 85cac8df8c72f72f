#include "reliability/send_window.h"

#include <algorithm>
#include <bit>

namespace cluster::reliability {

SendWindow::SendWindow(std::size_t capacity)
    : capacity_(std::bit_ceil(capacity)),
      flights_(std::min(capacity_, kInitialFrames)),
      mask_(static_cast<std::uint32_t>(flights_.size() - 1)),
      outstanding_(capacity_) {}

void SendWindow::grow() {
  std::vector<Flight> wider(flights_.size() * 2);
  const auto mask = static_cast<std::uint32_t>(wider.size() - 1);
  for (Sequence s = first_; s != end_; ++s) wider[s.value & mask] = std::move(at(s));
  flights_ = std::move(wider);
  mask_ = mask;
}

void SendWindow::push(std::unique_ptr<FrameBody> body) {
  assert(has_space(1));
  if (static_cast<std::size_t>(end_ - first_) == flights_.size()) grow();
  Flight& flight = at(end_);
  flight.body = std::move(body);
  flight.sendings = 0;
  flight.state = Flight::State::queued;
  ++end_;
}

void SendWindow::on_sent(Sequence s, Sequence transmission, Time now, std::uint8_t path) {
  Flight& flight = at(s);
  if (s == next_) {
    ++next_;
    outstanding_.insert(s);
    ++outstanding_count_;
    if (!flight.body->tokens.empty()) ++with_tokens_;
  }
  if (flight.state != Flight::State::in_flight) ++in_flight_;
  flight.path = path;
  flight.state = Flight::State::in_flight;
  flight.transmission = transmission;
  flight.sent_at = now;
  ++flight.sendings;
}

void SendWindow::mark_lost(Sequence s) {
  Flight& flight = at(s);
  assert(flight.state == Flight::State::in_flight);
  --in_flight_;
  flight.state = Flight::State::lost;
  lost_.push_back(s);
}

Sequence SendWindow::pop_lost() {
  [[maybe_unused]] const bool any = has_lost();
  assert(any);
  const Sequence s = lost_.front();
  lost_.pop_front();
  return s;
}

bool SendWindow::valid_ack(Sequence ack, const wire::Ack* ranges) const {
  if (ack.after(next_)) return false;
  // An old acknowledgement may have been delayed for long.
  if (first_ - ack > kStaleAckMax) return false;
  if (ranges == nullptr || ranges->count == 0) return true;
  // The ranges ascend from `ack`, each step less than 2^31: none may leave the window on the way.
  for (std::size_t i = 0; i < ranges->count; ++i) {
    if (ranges->ranges[i].end.after(next_) || !ranges->ranges[i].first.after(ack)) return false;
  }
  return true;
}

void SendWindow::remove(Sequence s, Flight& flight) {
  outstanding_.erase(s);
  --outstanding_count_;
  if (flight.state == Flight::State::in_flight) --in_flight_;
  if (!flight.body->tokens.empty()) --with_tokens_;
  flight.state = Flight::State::acknowledged;
}

bool SendWindow::has_lost() {
  while (!lost_.empty()) {
    const Sequence s = lost_.front();
    if (is_outstanding(s) && at(s).state == Flight::State::lost) return true;
    lost_.pop_front();
  }
  return false;
}

std::size_t SendWindow::footprint() const {
  std::size_t bytes = flights_.capacity() * sizeof(Flight) + outstanding_.footprint() + lost_.footprint();
  for (const Flight& flight : flights_) bytes += flight.body == nullptr ? 0 : flight.body->footprint();
  return bytes;
}

}  // namespace cluster::reliability

// Eager credit. A sender charges every eager message (its length and a fixed overhead) against a limit that
// the receiver raises as messages leave its store of unexpected messages. A message that would pass the limit
// is announced instead: it waits in the sender's memory. So a receiver bounds its own memory without ever
// dropping a message, or blocking one that others wait for.
#pragma once

#include "protocol/control_sender.h"

namespace cluster::protocol {

class CreditManager {
 public:
  CreditManager(const Context& context, ControlSender& control) : context_(context), control_(control) {}

  static std::uint64_t charge_of(std::size_t length) { return length + kMessageCharge; }

  // --- sender ---
  static bool covers(const Channel& channel, std::size_t length) {
    return channel.credit.charged + charge_of(length) <= channel.credit.limit;
  }
  static void charge(Channel& channel, std::size_t length) { channel.credit.charged += charge_of(length); }
  static void on_credit(Channel& channel, const wire::Segment& segment) {
    // Credit segments may overtake each other: the largest one holds.
    if (segment.total > channel.credit.limit) channel.credit.limit = segment.total;
  }

  // --- receiver ---
  /// False if the peer would charge more for a message than it was granted.
  static bool allows(const Channel& channel, std::uint64_t length) {
    const Credit& credit = channel.credit;
    return length <= credit.granted && credit.charged_by_peer + charge_of(length) <= credit.granted;
  }
  /// The peer has charged a message, which it may.
  static void accept(Channel& channel, std::uint64_t length) {
    channel.credit.charged_by_peer += charge_of(length);
  }
  /// A message has left the store, or never entered it: the peer may use its charge again. Advertised in
  /// steps, so that a credit segment travels once per many messages.
  void release(Channel& channel, std::uint64_t charge) {
    Credit& credit = channel.credit;
    credit.released += charge;
    const std::uint64_t limit = credit.released + context_.settings.eager_credit;
    if (limit < credit.granted + context_.settings.eager_credit / 4) return;
    credit.granted = limit;
    advertise(channel);
  }
  /// allows(), accept() and release() of a message that goes past the store, if no credit is to be advertised for that.
  /// False: it has not been counted.
  bool pass(Channel& channel, std::uint32_t length) const {
    Credit& credit = channel.credit;
    const std::uint64_t charge = charge_of(length);
    if (credit.charged_by_peer + charge > credit.granted ||
        credit.released + charge + ahead_ >= credit.granted)
      return false;
    credit.charged_by_peer += charge;
    credit.released += charge;
    return true;
  }
  void advertise(Channel& channel) {
    control_.send(channel, {.kind = wire::SegmentKind::credit, .total = channel.credit.granted});
  }

 private:
  const Context& context_;
  ControlSender& control_;
  /// The peer has been granted more than this beyond what was released, until more is due.
  const std::uint64_t ahead_ = context_.settings.eager_credit - context_.settings.eager_credit / 4;
};

}  // namespace cluster::protocol

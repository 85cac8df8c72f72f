// What arrives for the groups of an endpoint, and the end of a peer, which may be a member: handed up by Messenger to the
// engine, which has the groups.
#pragma once

#include "base/bytes.h"
#include "base/status.h"
#include "wire/segment.h"

namespace cluster::protocol {

struct Channel;

class GroupArrivals {
 public:
  virtual ~GroupArrivals() = default;
  /// A segment that is of_group(). Nothing may be sent from inside.
  virtual void on_group_segment(Channel& channel, const wire::Segment& segment, ConstBytes payload) = 0;
  /// The channel's carrier is about to end, which has taken nothing; another one follows.
  virtual void on_carrier_left(Channel& channel) = 0;
  /// Called before anything else of the channel ends.
  virtual void on_channel_failed(Channel& channel, Status status) = 0;
};

}  // namespace cluster::protocol

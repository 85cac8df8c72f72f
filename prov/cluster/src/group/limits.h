// The limits and times of a group. They are part of the protocol between members (docs/protocol.md, section
// 9).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/units.h"

namespace cluster::group {

/// The largest number of frames of one stream that a receiver or a sender keeps. A receiver keeps a frame
/// until it has delivered the frame, and a sender until all listeners have received the frame.
inline constexpr std::size_t kStreamWindow = 1024;
/// A body is this many bytes shorter than the longest frame, so that a frame of a flow can carry the body in
/// a group_repair.
inline constexpr std::size_t kBodyOverhead = 96;
/// A member sends a report after this many frames. If the sender asks for a report, the member sends one
/// immediately.
inline constexpr std::size_t kFramesPerStatus = 64;
/// The longest delay of a report that no sender waits for. A delay saves reports, each of which costs a frame
/// and may wake a process.
inline constexpr Duration kStatusDelay = 20ms;
/// The largest number of missing ranges in one report.
inline constexpr std::size_t kNakRanges = 8;
/// The largest random delay before a member reports a gap, for each doubling of the number of members. During
/// this delay the missing frames may still arrive, late or as a repair that another member has requested.
inline constexpr Duration kNakBackoff = 50us;
/// A member reports a gap again after this time, which doubles with each report.
inline constexpr Duration kNakRetry = 2ms;
inline constexpr Duration kNakRetryMax = 100ms;
/// After the first report of a missing frame, a sender waits this long for further reports before it
/// retransmits the frame.
inline constexpr Duration kRepairHold = 60us;
/// If members have not reported all frames sent to them, the sender asks for a report after this time at the
/// latest.
inline constexpr Duration kAskInterval = 200ms;
/// If a message waits for a report, the sender asks after this time at the earliest.
inline constexpr Duration kAskMin = 4ms;
/// If no message waits for a report, the sender asks after this time at the earliest, because members report
/// on their own within kStatusDelay.
inline constexpr Duration kAskIdle = 2 * kStatusDelay;
/// If no message waits and no further frame follows for this time, the sender sends the newest frame again. A
/// receiver cannot detect the loss of the newest frame, because it sees no gap.
inline constexpr Duration kRepeatNewest = 4ms;
/// After a member has sent this many consecutive reports without a frame received by multicast, the sender
/// sends to that member by unicast.
inline constexpr unsigned kUnheardMax = 4;
/// If every listener gets frames by unicast, the sender still sends a burst by multicast if it contains a
/// frame whose sequence number is a multiple of this. So the sender detects when multicast reaches listeners
/// again.
inline constexpr std::uint64_t kProbeInterval = 64;
/// A sender repairs a frame by multicast if at least an eighth of all listeners miss the frame, and at least
/// kRepairMany. If kRepairAll listeners miss it, the sender always uses multicast.
inline constexpr std::size_t kRepairMany = 2;
inline constexpr std::size_t kRepairAll = 8;
/// In a group without a roster: the interval between the first announcements of a member, and the number of
/// these. The interval between later announcements is kAnnounceInterval for each 32 members.
inline constexpr Duration kAnnounceFirst = 20ms;
inline constexpr unsigned kAnnouncesFirst = 6;
inline constexpr Duration kAnnounceInterval = 2s;

}  // namespace cluster::group

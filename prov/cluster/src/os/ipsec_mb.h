// AES-128-GCM by Intel's Multi-Buffer Crypto for IPsec, where it is installed. A frame costs a third to a fifth of what it costs with
// libcrypto: a call has no state to look up, and the library uses the wide AES instructions of newer processors. The frames are the
// same. Another library supplies all other primitives and compares the tags.
#pragma once

#include <memory>

#include "crypto/cryptography.h"

namespace cluster::os {

/// `other` with AES-128-GCM by this library; `other` itself, which may be null, if the library is missing or computes something else.
std::shared_ptr<const crypto::Cryptography> prefer_ipsec_mb(
    std::shared_ptr<const crypto::Cryptography> other);

}  // namespace cluster::os

// The primitives of crypto/ by OpenSSL's libcrypto, and AES-128-GCM by Intel's Multi-Buffer Crypto for IPsec where that is installed. The
// plugin looks for the libraries when the first key is used: so it depends on no version of them, and loads where there is none. They stay
// loaded: their objects outlive everything that could close them.
#pragma once

#include <memory>
#include <string>

#include "crypto/cryptography.h"

namespace cluster::os {

/// Null if no libcrypto of version 3 or 1.1 can be loaded, or if the one that was found does not compute what
/// the RFCs say; `reason` says why.
std::shared_ptr<const crypto::Cryptography> load_libcrypto(std::string& reason);

/// `other` with AES-128-GCM by libIPSec_MB; `other` itself, which may be null, if that is missing or computes something else. A frame costs
/// a third to a fifth of what it costs with libcrypto: a call has no state to look up, and the library uses the wide AES instructions
/// of newer processors. The frames are the same.
std::shared_ptr<const crypto::Cryptography> prefer_ipsec_mb(
    std::shared_ptr<const crypto::Cryptography> other);

}  // namespace cluster::os

// As where this API comes from: what snapshots hand out is cast to these, so that importing Dendro alone
// is enough for it. Not all of Foundation, whose names are many.
@_exported public import class Foundation.NSArray
@_exported public import class Foundation.NSDictionary
@_exported public import class Foundation.NSNull
@_exported public import class Foundation.NSNumber

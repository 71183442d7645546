// The types that programs cast snapshots' values to, so that importing Dendro alone is enough, as with
// Firebase. Not all of Foundation, whose names are many.
@_exported public import class Foundation.NSArray
@_exported public import class Foundation.NSDictionary
@_exported public import class Foundation.NSNull
@_exported public import class Foundation.NSNumber

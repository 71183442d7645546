import DendroCommandLine
import DendroPlatform

exit(CommandLineTool.main())
